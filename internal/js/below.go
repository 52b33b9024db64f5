package js

import (
	"fmt"
	"math"
	"reflect"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"
)

// These functions reach abilities of the engine that package quickjs does not offer. They rest on private fields of a pinned
// version: with others no script starts, so that a new version fails all tests of this package.

// below is the C side of vm: its thread, and its runtime.
func below(vm *quickjs.VM) (tls *libc.TLS, rt uintptr) {
	at := reflect.ValueOf(vm).Elem().FieldByName("runtime").Elem()
	rt = uintptr(at.FieldByName("cRuntime").Uint())
	return (*libc.TLS)(at.FieldByName("tls").UnsafePointer()), rt
}

// nameless keeps code that is evaluated from now on out of the stacks of errors, where its lines would
// pass for lines of the script.
func (w *worker) nameless(is bool) {
	tls, rt := below(w.vm)
	lib.XJS_SetStripInfo(tls, rt, map[bool]int32{true: lib.MJS_STRIP_DEBUG | lib.MJS_STRIP_SOURCE}[is])
}

// unheard are the promises that were rejected and that nobody waits for. They stay in the memory of
// the script.
type unheard struct {
	of   map[lib.TJSValue]rejection
	tell func(*libc.TLS, uintptr, lib.TJSValue, lib.TJSValue, int32, uintptr) // by the engine
}

type rejection struct {
	no     int
	reason lib.TJSValue
}

// listen has the engine tell of rejections from now on.
func (u *unheard) listen(vm *quickjs.VM) {
	u.of = map[lib.TJSValue]rejection{}
	no := 0
	u.tell = func(tls *libc.TLS, ctx uintptr, promise, reason lib.TJSValue, heard int32, _ uintptr) {
		if was, ok := u.of[promise]; ok && heard != 0 {
			delete(u.of, promise)
			lib.XFreeValue(tls, ctx, promise)
			lib.XFreeValue(tls, ctx, was.reason)
		} else if heard == 0 {
			no++
			u.of[lib.XDupValue(tls, ctx, promise)] = rejection{no, lib.XDupValue(tls, ctx, reason)}
		}
	}
	tls, rt := below(vm)
	// As libc has it, a pointer to a C function is the word that a Go func is.
	lib.XJS_SetHostPromiseRejectionTracker(tls, rt, *(*uintptr)(unsafe.Pointer(&u.tell)), 0)
}

// silent is the result of a script that is over without a word: its first rejection, if any.
func (w *worker) silent() Result {
	if len(w.unheard.of) == 0 {
		return Result{}
	}
	first := rejection{no: math.MaxInt}
	for _, r := range w.unheard.of {
		if r.no < first.no {
			first = r
		}
	}
	reason := struct { // a quickjs.Value
		vm *quickjs.VM
		v  lib.TJSValue
	}{w.vm, first.reason}
	r := w.told(*w.exception(*(*quickjs.Value)(unsafe.Pointer(&reason))))
	if r.Limit != "" {
		return r
	}
	r.Error += "\n    in a promise that the script did not await"
	if more := len(w.unheard.of) - 1; more > 0 {
		r.Error += fmt.Sprintf(", and %d more", more)
	}
	return r
}
