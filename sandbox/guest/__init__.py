"""The programs inside a box: its first process, and the running of a job.

    header ──> guest (PID 1) ──fork──> supervisor ──fork──> the job's own process
                                       reads the job        confined, forked before the job was read

Standard library only, Python 3.11.2 or later, any uid but root. Nothing of it trusts the job, and the
guest itself never holds a secret: its memory is what jobs are forked from.
"""
