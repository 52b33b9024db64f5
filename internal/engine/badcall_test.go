//go:build linux

package engine_test

import (
	"sync/atomic"
	"syscall"

	"moltisfs/internal/guardfs"
)

// badCall is what goes wrong with a system call, or from that call on with every one.
type badCall struct {
	guardfs.Fault
	lasting bool
}

func badCalls() map[string]badCall {
	return map[string]badCall{
		"EIO":            {guardfs.Fault{Err: syscall.EIO}, false},
		"EIO, but did":   {guardfs.Fault{Err: syscall.EIO, After: true}, false},
		"EIO ever after": {guardfs.Fault{Err: syscall.EIO}, true},
	}
}

// calls are the system calls of a tree.
type calls struct {
	hook atomic.Pointer[func(op string) *guardfs.Fault]
	look func() // before each call that ends counts; nil
}

// callsOf opens the tree anew, under a hand that can make its calls fail.
func callsOf(x *tree) *calls {
	c := &calls{}
	x.fault = func(op string) *guardfs.Fault {
		if h := c.hook.Load(); h != nil {
			return (*h)(op)
		}
		return nil
	}
	x.Close()
	x.open()
	return c
}

// fail runs step while its n-th call goes wrong. hit is that call, "" when there are not so many.
func (c *calls) fail(n int64, bad badCall, step func() error) (hit string, err error) {
	var count atomic.Int64
	var first atomic.Pointer[string]
	hook := func(op string) *guardfs.Fault {
		if k := count.Add(1); k == n || bad.lasting && k > n {
			first.CompareAndSwap(nil, &op)
			return &bad.Fault
		}
		return nil
	}
	c.hook.Store(&hook)
	err = step()
	c.hook.Store(nil)
	if op := first.Load(); op != nil {
		hit = *op
	}
	return hit, err
}
