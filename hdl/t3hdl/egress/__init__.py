"""The egress matcher: which tracked chunk a store row belongs to."""
