"""Runs: strategies over a sample set with a generator, stored one finished sample at a time.

The modules, in the order of a sample's call path:

* `runner`: `run`, its cost estimate, the fault of an incomplete run, and `Runs`, the shared parts of one call;
* `spec`: `RunOptions`, the samples that they select, the choices that decide a run's numbers, the run's command;
* `scheduling`: samples cut into units, shares and parts for processes, threads and the store;
* `resources`: parts that work in parallel, opened and closed together;
* `attempt`: completes, scores and stores the missing samples and records their faults;
* `sample`: completes one sample: the strategy in its cell builds the prompt, and the model answers;
* `controls`: completions built from the answer, without a strategy;
* `batching`: batches the requests of many threads and stores every answer;
* `execution`: the sandbox: verdicts of functions by their tests, and programs of strategies;
* `scoring`: metrics, costs in bits and diagnostics of a completed sample;
* `stored`: verdicts, scores and gains of blocks that are added after a run;
* `merging`: merges other processes' shards into the store;
* `cluster`, `node`: units on the nodes of a Ray cluster, and their workers.
"""
