"""Make the weights of the built-in generator: fetch, count, cut, fit, judge.

python -m scripts.fit_incontext.fetch python DIR            public packages, pinned, into DIR/fit, DIR/tune, DIR/test
python -m scripts.fit_incontext.count python PRIOR.npz      n-grams and spelling; for Java of the folders DIR/fit/*
python -m scripts.fit_incontext.cut python DIR/fit/* …      samples of the benchmark's builder, with prompts
python -m scripts.fit_incontext.fit python PRIOR.npz …      feature weights, into the package's weights file
python -m scripts.fit_incontext.judge python …              bits and scores: choices on DIR/tune, the record on DIR/test

The drafts of RepoCoder's second round come from weights: those shipped before, and for DIR/test the new ones.
"""
