"""Feed-forwards. One kind a file; `FeedForward` is the union of the kinds, told apart by `kind`."""

from schedc.spec.feed_forwards.dense import Dense

FeedForward = Dense
