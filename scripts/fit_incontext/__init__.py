"""How the weights of the built-in generator are made: fetch, count, cut, fit, judge.

python -m scripts.fit_incontext.fetch DIR                 public packages, pinned, into DIR/python and DIR/java
python -m scripts.fit_incontext.count python DIR OUT.npz  n-grams and spelling
python -m scripts.fit_incontext.cut python DIR OUT.jsonl  samples with prompts of several kinds
python -m scripts.fit_incontext.fit python …              feature weights, into the package's weights file
python -m scripts.fit_incontext.judge python …            bits and scores on packages that were held out
"""
