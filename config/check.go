package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"

	"moltisfs/internal/args"
	"moltisfs/internal/glob"
)

// Check finds everything that is wrong with the values themselves, as joined *Problem in the order
// of the keys. Decode has called it already. A Config made in Go must be checked before it is used.
func (c Config) Check() error {
	var errs []error
	for _, p := range c.problems() {
		errs = append(errs, &p.Problem)
	}
	return errors.Join(errs...)
}

// finding is a problem that may depend on the value of another key. When that value is broken,
// reporting this one is pointless.
type finding struct {
	Problem
	dependsOn string
}

func (c Config) problems() []*finding {
	var out []*finding
	add := func(key, why, hint string) *finding {
		f := &finding{Problem: Problem{Key: key, Why: why, Hint: hint}}
		out = append(out, f)
		return f
	}
	fs, cp, tiers := c.Tools.FS, c.Tools.FS.Checkpoint, map[string]string{}

	schema().walk(func(f *field) {
		f.checkValue(f.value(&c), add)
		if strings.HasPrefix(f.key, "tools.fs.hooks.") && f.typ.Kind() == reflect.Slice {
			checkPrograms(f.key, f.value(&c).Interface().([]string), add)
		}
		if name, is := strings.CutPrefix(f.key, "tools.sandbox."); is {
			checkSandbox(name, c.Tools.Sandbox, add)
		}
		switch f.key {
		case "tools.fs.workspace_root":
			checkRoot(f.key, fs.WorkspaceRoot, add)
		case "tools.jettson.workspaces":
			checkRoot(f.key, c.Tools.Jettson.Workspaces, add)
		case "tools.jettson.per_session":
			if j := c.Tools.Jettson; j.PerSession && j.Workspaces == "" {
				p := add(f.key, "needs workspaces, which is not set", "add workspaces = \"/…\"")
				p.dependsOn = "tools.jettson.workspaces"
			}
		case "tools.fs.allow_paths":
			checkGlobs(f.key, fs.AllowPaths, false, add)
		case "tools.fs.deny_paths":
			checkGlobs(f.key, fs.DenyPaths, false, add)
		case "tools.fs.policies":
			checkPolicies(f.key, fs.Policies, add)
		case "tools.fs.unprotected":
			checkGlobs(f.key, fs.Unprotected, false, add)
		case "tools.fs.must_read_before_write":
			if fs.MustReadBeforeWrite && !fs.TrackReads {
				p := add(f.key, "needs track_reads = true, which is false", "add track_reads = true")
				p.dependsOn = "tools.fs.track_reads"
			}
		case "tools.fs.checkpoint.max_bytes":
			switch {
			case cp.MaxBytes <= 0:
			case cp.MaxBytes < minStore && cp.MaxFileBytes <= cp.MaxBytes:
				add(f.key, fmt.Sprintf("%d is less than %d", cp.MaxBytes, minStore),
					"a store with nothing in it takes an eighth of that")
			case cp.MaxFileBytes > cp.MaxBytes:
				why := fmt.Sprintf("%d is less than max_file_bytes, %d", cp.MaxBytes, cp.MaxFileBytes)
				p := add(f.key, why, "the store must have room for the largest file")
				p.dependsOn = "tools.fs.checkpoint.max_file_bytes"
			}
		case keepLast:
			if cp.KeepLast == 0 && cp.KeepWithin == 0 {
				add(f.key, "0, and keep_within is 0 as well: nothing would be kept",
					"set one of the two, or checkpoint_before_mutation = false").dependsOn = keepWithin
			}
		case "tools.fs.checkpoint.exclude":
			checkGlobs(f.key, cp.Exclude, true, add)
		case "tools.fs.checkpoint.encrypt_to":
			if cp.EncryptTo != "" {
				_, err := age.ParseRecipients(strings.NewReader(cp.EncryptTo))
				if err != nil {
					hint := `age-keygen prints one: it begins with "age1"`
					add(f.key, "not an age recipient", hint)
				}
			}
		case "tools.capability.autonomous", "tools.capability.notify",
			"tools.capability.approval_required", "tools.capability.blocked":
			checkCapabilities(f.key, f.value(&c).Interface().([]string), tiers, add)
		case "tools.policy.allow", "tools.policy.deny":
			checkNames(f.key, f.value(&c).Interface().([]string), add)
		}
	})
	return out
}

// checkValue checks what can be told from the type of the key: its allowed words, and its sign.
func (f *field) checkValue(v reflect.Value, add adder) {
	switch {
	case f.section():
	case f.enum != nil:
		if s := v.String(); (s != "" || f.sample == "") && !slices.Contains(f.enum, s) {
			hint := "use one of " + quoted(f.enum)
			if near := args.Nearest(s, f.enum); near != "" {
				hint = "did you mean " + strconv.Quote(near) + "? Allowed: " + quoted(f.enum)
			}
			add(f.key, strconv.Quote(s)+" is not known", hint)
		}
	case f.typ == durationType:
		switch d := Duration(v.Int()); {
		case d < 0:
			add(f.key, "must not be negative: "+d.String(), f.form())
		case d == 0 && f.key != keepWithin:
			add(f.key, "must be more than 0", f.form())
		}
	case v.CanInt():
		switch n := v.Int(); {
		case n < 0:
			add(f.key, "must not be negative: "+strconv.FormatInt(n, 10), f.form())
		case n == 0 && f.sample == "" && f.key != keepLast && !mayBeZero(f.key):
			add(f.key, "must be more than 0", f.form())
		case n > 0 && n < least[f.key]:
			add(f.key, fmt.Sprintf("%d is less than %d: no script runs on it", n, least[f.key]), f.form())
		}
	}
}

var least = map[string]int64{"tools.js.memory": 4 << 20}

// mayBeZero tells the keys of which 0 switches something off.
func mayBeZero(key string) bool {
	return strings.HasPrefix(key, "tools.fs.audit.") || strings.HasPrefix(key, "tools.fs.limits.")
}

// minStore is the least max_bytes with which a store can hold anything.
const minStore = 1 << 20

const (
	keepLast   = "tools.fs.checkpoint.keep_last"
	keepWithin = "tools.fs.checkpoint.keep_within"
)

type adder func(key, why, hint string) *finding

func checkRoot(key, root string, add adder) {
	switch {
	case root == "":
	case strings.HasPrefix(root, "~"):
		add(key, "~ is not expanded", "write the home directory out")
	case strings.HasPrefix(root, "$"):
		add(key, "variables are not expanded", "write the directory out")
	case strings.ContainsRune(root, 0):
		add(key, "holds a NUL byte", "")
	case !filepath.IsAbs(root):
		add(key, strconv.Quote(root)+" is not absolute", "begin it with /")
	case strings.TrimSpace(root) != root:
		add(key, "has blanks around it", "remove them")
	default:
		clean := filepath.Clean(root)
		if clean != root && clean != strings.TrimSuffix(root, string(filepath.Separator)) {
			add(key, strconv.Quote(root)+` holds ".", ".." or an empty name`, "write "+quote(clean))
		}
	}
}

func checkPrograms(key string, lines []string, add adder) {
	for i, line := range lines {
		if words := strings.Fields(line); len(words) == 0 || !filepath.IsAbs(words[0]) {
			add(fmt.Sprintf("%s[%d]", key, i), quote(line)+" does not begin with an absolute path",
				"name the program from the root on, with its arguments behind it")
		}
	}
}

// checkGlobs: with anyDepth, a glob without a slash stands for any depth.
func checkGlobs(key string, globs []string, anyDepth bool, add adder) {
	for i, g := range globs {
		var before string
		if anyDepth && g != "" && !strings.Contains(g, "/") {
			before = "**/"
		}
		var bad *glob.SyntaxError
		whole := before + g
		if !anyDepth {
			if rest, ok := strings.CutPrefix(g, rootVariable); ok {
				whole = "/" + rootVariable[2:len(rootVariable)-1] + "__" + rest // as long: offsets stay
				if rest != "" && rest[0] != '/' {
					whole = g // which is not absolute
				}
			}
		}
		if errors.As(glob.CheckRule(whole), &bad) {
			why := fmt.Sprintf("bad glob %s: %s", quote(g), bad.Why)
			add(fmt.Sprintf("%s[%d]", key, i), why, "")
		}
	}
}

func quoted(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Quote(w))
	}
	return b.String()
}
