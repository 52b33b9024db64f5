// Package races lets two names trade places, as fast as the machine can, under calls of every
// dialect, and looks whether one of them comes to what it may not touch. It has no code of its own,
// only tests. They touch folders that they make themselves.
package races
