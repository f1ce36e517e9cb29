"""Runs: strategies over a sample set with a generator, stored a finished sample at a time.

The files, in the order in which a sample passes them:

* `runner`: `run`, what it says of costs beforehand, and the fault of a run that is not whole; `Runs`, what the runs of
  one call share;
* `spec`: `RunOptions`, the samples that they leave, the choices that decide a run's numbers, the command for it;
* `scheduling`: the samples cut into units, shares and parts for processes, for threads and for the store;
* `resources`: the parts that run beside each other, opened and closed together;
* `attempt`: what is missing is completed, scored and stored, with its faults;
* `sample`: one sample's way from its query through the strategy, in its cell, to its completions;
* `controls`: completions that are made with the answer, in a strategy's place;
* `batching`: requests of many threads become batches, and every answer is stored;
* `execution`: the sandbox: verdicts of functions by their tests, and programs of strategies;
* `scoring`: metrics, costs in bits and diagnostics of a completed sample;
* `stored`: verdicts, scores and gains of blocks that completions get after their run;
* `merging`: shards that other processes made, brought into the store;
* `cluster`, `node`: units on the nodes of a Ray cluster, and what does them there.

From outside: `run` and `fault_of` of `runner`; `RunSummary` of `attempt`; `open_executor` of
`execution`; `RunOptions` and the rest of `spec`; `stored`. What imports or prices results takes single parts:
completions of `sample`, the scorer of `scoring`. The dashboard takes `spec` alone.
"""
