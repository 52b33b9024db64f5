package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"moltisfs/internal/args"
)

// A Method carries out one request of JSON-RPC for an operator, whose principal is by. An error that is no *Error is the server's own.
type Method = func(ctx context.Context, by string, params json.RawMessage) (any, error)

// An Error is a fault of a request of JSON-RPC, as its sender is told.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// CodeParams is the code of wrong parameters.
const CodeParams = -32602

// Wrong gives the error with a code and a text.
func Wrong(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Params gives a reader of parameters, whose members are the fields of P. Its error is an *Error.
func Params[P any]() func(json.RawMessage) (*P, error) {
	spec := args.Of[P](nil)
	return func(raw json.RawMessage) (*P, error) {
		p, err := spec.Decode(raw)
		if bad, ok := errors.AsType[*args.Error](err); ok {
			return nil, Wrong(CodeParams, "params: %s; %s", bad.What, bad.Hint)
		}
		return p.(*P), nil
	}
}
