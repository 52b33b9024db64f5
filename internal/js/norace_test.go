//go:build !race

package js

var boundForTests = bound
