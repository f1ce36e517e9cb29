"""Runs strategies over a sample set with a generator, and stores finished samples while the run continues.

The modules, in the order in which a sample passes through them:

* `runner`: `run`, its cost estimate, and the fault of an incomplete run;
* `spec`: a run's options, its samples, and the choices that identify it;
* `scheduling`: units of samples for processes, shares for machines, batches for threads;
* `resources`: cells, model, indices and sandbox, opened and closed together;
* `attempt`: completes, scores and stores the missing samples;
* `sample`: the strategy builds a sample's prompt, and the model answers;
* `controls`: completions without a strategy, such as the reference itself;
* `batching`: batches the requests of many threads and stores every answer;
* `execution`: the sandbox for function tests and strategies' programs;
* `scoring`: metrics, costs in bits and diagnostics of a completed sample;
* `stored`: adds verdicts, scores and block gains to stored runs;
* `merging`: merges other processes' shards into the store;
* `cluster`, `node`: complete units of samples on the nodes of a Ray cluster.
"""
