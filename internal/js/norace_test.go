//go:build !race

package js

import "moltisfs/internal/child"

var boundForTests = child.Bound
