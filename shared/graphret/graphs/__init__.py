"""Getting graphs in and out: readers of other formats, loading into a store, and writing files of other formats."""
