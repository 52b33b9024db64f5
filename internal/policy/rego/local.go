package rego

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/topdown"

	"moltisfs/internal/policy"
)

const (
	evalTime = time.Second // of one evaluation
	maxInput = 1 << 20     // bytes of its texts
	maxFile  = 1 << 20     // bytes
	maxFiles = 1000        // of a directory
)

// local is a policy in files of this machine.
type local struct {
	path, rule string
	compiler   *ast.Compiler
	query      ast.Body
	queries    ast.QueryCompiler
	time       time.Duration
}

// capabilities gives the builtins that a policy may call: none reaches the network or tells of us.
func capabilities(v ast.RegoVersion) *ast.Capabilities {
	c := ast.CapabilitiesForThisVersion(ast.CapabilitiesRegoVersion(v))
	c.Builtins = slices.DeleteFunc(c.Builtins, func(b *ast.Builtin) bool {
		return b.Name == "http.send" || b.Name == "opa.runtime" || strings.HasPrefix(b.Name, "net.")
	})
	c.AllowNet = []string{} // for schemas
	return c
}

// load reads and compiles a file, or all *.rego of a directory.
func load(name, rule string) (*local, error) {
	if rule == "" {
		rule = defaultRule
	}
	l := &local{path: name, rule: rule, time: evalTime}
	ref, err := ast.ParseRef(rule)
	if err != nil || !ref.IsGround() || !ref.HasPrefix(ast.DefaultRootRef) || len(ref) < 2 {
		return nil, fmt.Errorf("%s: %q is not the name of a rule, as %s", name, rule, defaultRule)
	}
	files, err := filesOf(name)
	if err != nil {
		return nil, err
	}
	modules := map[string]*ast.Module{}
	for _, file := range files {
		m, err := parse(file)
		if err != nil {
			return nil, err
		}
		modules[file] = m
	}
	l.compiler = ast.NewCompiler().WithCapabilities(capabilities(ast.RegoV1))
	if l.compiler.Compile(modules); l.compiler.Failed() {
		return nil, told(l.compiler.Errors)
	}
	l.queries = l.compiler.QueryCompiler()
	l.query, err = l.queries.Compile(ast.NewBody(ast.Equality.Expr(ast.NewTerm(ref), result)))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", name, rule, err)
	}
	return l, nil
}

var result = ast.VarTerm("result")

// filesOf are the policies at name, sorted.
func filesOf(name string) (files []string, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, cause(name, err)
	}
	if !info.IsDir() {
		return []string{name}, nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return nil, cause(name, err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".rego") && !e.IsDir() {
			files = append(files, filepath.Join(name, e.Name()))
		}
	}
	switch {
	case len(files) == 0:
		return nil, fmt.Errorf("%s: there is no *.rego in this directory", name)
	case len(files) > maxFiles:
		return nil, fmt.Errorf("%s: more than %d policies", name, maxFiles)
	}
	return files, nil
}

func cause(name string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// parse reads one file as Rego 1, or else as it was before.
func parse(name string) (*ast.Module, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, cause(name, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written through it
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	src, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, cause(name, err)
	}
	if len(src) > maxFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxFile)
	}
	var first error
	for _, v := range []ast.RegoVersion{ast.RegoV1, ast.RegoV0} {
		m, err := ast.ParseModuleWithOpts(name, string(src),
			ast.ParserOptions{RegoVersion: v, Capabilities: capabilities(v)})
		if err == nil && m != nil {
			return m, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		return nil, fmt.Errorf("%s: it is empty", name)
	}
	return nil, told(first)
}

// told gives an error of OPA as one error a line, with a reason where a builtin is missing because it is taken away here.
func told(err error) error {
	all, ok := errors.AsType[ast.Errors](err)
	if !ok {
		return err
	}
	var out []error
	for _, e := range all[:min(len(all), 5)] {
		text := e.Message
		if strings.HasPrefix(text, "undefined function") {
			text += " (policies here reach no network and no process)"
		}
		out = append(out, fmt.Errorf("%s:%d: %s", e.Location.File, e.Location.Row, text))
	}
	return errors.Join(out...)
}

func (l *local) String() string { return "file://" + l.path + " " + l.rule }

func (l *local) decide(ctx context.Context, in *policy.Input) (yes bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			yes, err = false, fmt.Errorf("%s: the evaluation panicked: %v", l.path, r)
		}
	}()
	n := len(in.Path) + len(in.Destination) + len(in.ResolvedPath) + len(in.ResolvedDestination)
	for name, text := range in.Headers {
		n += len(name) + len(text)
	}
	if n > maxInput {
		return false, fmt.Errorf("%s: the input is %d bytes, over the limit of %d", l.path, n, maxInput)
	}
	input, err := ast.InterfaceToValue(in)
	if err != nil {
		return false, fmt.Errorf("%s: the input: %w", l.path, err)
	}
	cancel := topdown.NewCancel()
	defer time.AfterFunc(l.time, cancel.Cancel).Stop()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, cancel.Cancel)()
	}
	q := topdown.NewQuery(l.query).WithQueryCompiler(l.queries).WithCompiler(l.compiler).
		WithStore(nothing{}).WithTransaction(nothing{}).WithInput(ast.NewTerm(input)).
		WithStrictBuiltinErrors(true).WithCancel(cancel)
	var got ast.Value
	err = q.Iter(ctx, func(r topdown.QueryResult) error {
		got = r[result.Value.(ast.Var)].Value
		return nil
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return false, ctx.Err()
	case topdown.IsCancel(err):
		return false, fmt.Errorf("%s: %s took longer than %s", l.path, l.rule, l.time)
	case err != nil:
		return false, fmt.Errorf("%s: %w", l.path, err)
	case got == nil:
		return false, &policy.Undecided{Why: l.rule + " is undefined for this input"}
	}
	b, ok := got.(ast.Boolean)
	if !ok {
		return false, fmt.Errorf("%s: %s is a value of type %s, not true or false", l.path, l.rule,
			ast.ValueName(got))
	}
	return bool(b), nil
}

// nothing is the data that policies have beside their rules. An evaluation only reads it.
type nothing struct{ storage.Store }

func (nothing) ID() uint64 { return 0 }
func (nothing) Read(context.Context, storage.Transaction, storage.Path) (any, error) {
	return nil, &storage.Error{Code: storage.NotFoundErr}
}
