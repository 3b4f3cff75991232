"""The golden model of the tracker."""
