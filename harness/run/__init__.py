"""Runs: strategies over a sample set with a generator, stored a finished sample at a time.

The files, in the order in which a sample passes them:

* `runner`: `run`, what it says of costs beforehand, and the fault of a run that is not whole;
* `choices`: `RunOptions`, the samples that they leave, and how completions are decoded;
* `runs`: what the runs of one call share, opened and closed together;
* `spec`: the choices that decide a run's numbers, the samples that it plans, the command that repeats it;
* `units`: the samples cut into work that any process can do, and a share of them;
* `machinery`: the parts that run beside each other, opened and closed together;
* `attempt`: what is missing is completed, scored and stored, with its faults;
* `portions`: work in parts: a process's share of the samples, threads, parts that are stored together;
* `sample`: one sample's way from its query through the strategy, in its cell, to its completions;
* `controls`: completions that are made with the answer, in a strategy's place;
* `batching`: requests of many threads become batches, and every answer is stored;
* `programs`: the sandbox, for strategies that run what the model wrote;
* `judging`: verdicts of functions, by their tests;
* `pricer`: the coder that measures costs in bits;
* `scoring`: metrics, costs in bits and diagnostics of a completed sample;
* `stored`: verdicts and scores that completions get after their run;
* `merging`: shards that other processes made, brought into the store;
* `cluster`, `node`: units on the nodes of a Ray cluster, and what does them there.

From outside: `run` and `fault_of` of `runner`; `RunOptions` of `choices`; `Progress`, `RunSummary` and `silent` of
`attempt`; `open_executor` of `judging`; `spec` and `stored`. What imports or prices results takes single parts:
completions of `sample`, the scorer of `scoring`. The dashboard takes `spec` alone.
"""
