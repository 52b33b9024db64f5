// Package tty knows how large a terminal is. It touches nothing but the file that it is given.
package tty
