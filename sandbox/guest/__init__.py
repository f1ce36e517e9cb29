"""The programs inside a box: its first process, and the processes that run a job.

    header ──> guest (PID 1) ──fork──> supervisor ──fork──> the job's own process
                                       reads the job        confined, forked before the job was read

They use the standard library only, on Python 3.11.2 or later, under any uid but root. They never trust the job. The
guest itself never contains a secret, because jobs are forked from its memory.
"""
