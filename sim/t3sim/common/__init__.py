"""What every room uses: the cache, compiled kernels, output folders, exact ratios, units."""
