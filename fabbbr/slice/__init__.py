"""The life of a slice: made, reached, prepared, measured, renewed, torn down; what is remembered of it."""
