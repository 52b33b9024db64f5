package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"filippo.io/age"

	"moltisfs/internal/args"
	"moltisfs/internal/glob"
	"moltisfs/internal/lazy"
)

// Check finds everything that is wrong with the values themselves, as joined *Problem in the order
// of the keys. Decode has called it already. A Config made in Go must be checked before it is used.
func (c Config) Check() error {
	var errs []error
	for _, p := range c.problems() {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}

func (c Config) problems() (out []*Problem) {
	add := func(key, why, hint string) { out = append(out, &Problem{Key: key, Why: why, Hint: hint}) }
	fs, cp, tiers := c.Tools.FS, c.Tools.FS.Checkpoint, map[string]string{}
	schema().walk(func(f *field) {
		v := f.value(&c)
		f.checkValue(v, add)
		if list, is := v.Interface().([]string); is {
			f.checkList(list, tiers, add)
		}
		if name, is := strings.CutPrefix(f.key, "tools.sandbox."); is {
			checkSandbox(name, c.Tools.Sandbox, add)
		}
		if name, is := strings.CutPrefix(f.key, "tools.fs.fleet."); is {
			checkFleet(name, c.Tools, add)
		}
		switch f.key { // those that depend on another
		case "tools.jettson.per_session":
			if j := c.Tools.Jettson; j.PerSession && j.Workspaces == "" {
				add(f.key, "needs workspaces, which is not set", "add workspaces = \"/…\"")
			}
		case "tools.fs.must_read_before_write":
			if fs.MustReadBeforeWrite && !fs.TrackReads {
				add(f.key, "needs track_reads = true, which is false", "add track_reads = true")
			}
		case "tools.fs.http.issuer":
			if fs.HTTP.Issuer != "" && fs.HTTP.Audience == "" {
				add(f.key, "needs audience, which is not set: a token for another server would be taken", `add audience = "https://…/mcp"`)
			}
		case "tools.fs.http.audience":
			if fs.HTTP.Audience != "" && fs.HTTP.Issuer == "" {
				add(f.key, "needs issuer, which is not set: nobody's tokens would be taken", `add issuer = "https://…"`)
			}
		case "tools.fs.http.claim":
			if fs.HTTP.Claim == "" {
				add(f.key, "must not be empty", `write "sub", or another claim of the tokens`)
			}
		case "tools.fs.checkpoint.max_bytes":
			if f.min <= cp.MaxBytes && cp.MaxBytes < cp.MaxFileBytes {
				why := fmt.Sprintf("%d is less than max_file_bytes, %d", cp.MaxBytes, cp.MaxFileBytes)
				add(f.key, why, "the store must have room for the largest file")
			}
		case "tools.fs.checkpoint.keep_last":
			if cp.KeepLast == 0 && cp.KeepWithin == 0 {
				add(f.key, "0, and keep_within is 0 as well: nothing would be kept",
					"set one of the two, or checkpoint_before_mutation = false")
			}
		}
	})
	return out
}

// checkValue checks what the declaration of the key says of it: its allowed words, its least value, and what its text has to be.
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
	case v.CanInt():
		switch n := v.Int(); {
		case n < 0:
			add(f.key, fmt.Sprint("must not be negative: ", v.Interface()), f.form())
		case n == 0 && f.sample == "" && f.min > 0:
			add(f.key, "must be more than 0", f.form())
		case n > 0 && n < f.min:
			add(f.key, fmt.Sprintf("%d is less than %d", n, f.min), f.form())
		}
	case f.check == "prefix":
		if !prefix().MatchString(v.String()) {
			add(f.key, strconv.Quote(v.String())+" can't begin a tool's name", "write up to 20 letters, digits, _ and -, a letter first and _ or - last, as files_")
		}
	case f.check == "root":
		checkRoot(f.key, v.String(), add)
	case f.check == "url" && v.String() != "":
		checkURL(f.key, v.String(), add)
	case f.check == "recipient" && v.String() != "":
		if _, err := age.ParseRecipients(strings.NewReader(v.String())); err != nil {
			add(f.key, "not an age recipient", `age-keygen prints one: it begins with "age1"`)
		}
	}
}

// prefix is a tool_prefix that model APIs take: with the longest name it has 40 characters of 64, which leaves room for a client's own.
// With its end no prefixed name is that of another tool.
var prefix = lazy.Regexp(`^([A-Za-z][A-Za-z0-9_-]{0,18}[_-])?$`)

// checkList checks each entry of a list, as the declaration of its key says. tiers are the capabilities that another list has.
func (f *field) checkList(list []string, tiers map[string]string, add adder) {
	switch f.check {
	case "globs":
		checkGlobs(f.key, list, false, add)
	case "globs of any depth":
		checkGlobs(f.key, list, true, add)
	case "directories":
		for i, dir := range list {
			key, name := fmt.Sprintf("%s[%d]", f.key, i), strings.TrimSuffix(dir, "/**")
			switch checkRoot(key, name, add); {
			case name == "" || filepath.Clean(name) == "/":
				add(key, strconv.Quote(dir)+" is not a directory for this", "name one, as a cache in the home directory")
			case strings.ContainsAny(name, "*?[{"):
				add(key, strconv.Quote(dir)+" is a pattern of several directories", "name each of them; /** may stand at the end")
			}
		}
	case "programs":
		checkPrograms(f.key, list, add)
	case "webhooks":
		checkWebhooks(f.key, list, add)
	case "policies":
		checkPolicies(f.key, list, add)
	case "capabilities":
		checkCapabilities(f.key, list, tiers, add)
	case "tools":
		checkNames(f.key, list, add)
	}
}

// checkURL takes the URL of a server, without a query. Others could read along, and answer in its place, where it is not https.
func checkURL(key, text string, add adder) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		add(key, quote(text)+" is not the URL of a server", "write it as https://HOST/PATH")
		return
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !thisMachine(u.Hostname())) {
		add(key, quote(text)+" is not https", "only a server on this machine can do without")
	}
}

type adder func(key, why, hint string)

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

// checkWebhooks wants each line to be an address and a file. Whoever is between us and the address could read it without TLS.
func checkWebhooks(key string, lines []string, add adder) {
	for i, line := range lines {
		key := fmt.Sprintf("%s[%d]", key, i)
		words := strings.Fields(line)
		if len(words) != 2 || !filepath.IsAbs(words[1]) {
			add(key, quote(line)+" is not a URL and the absolute path of a file with the secret", "write \"https://example.com/hook /etc/moltis-fs/hook.key\"")
			continue
		}
		address, _, _ := strings.Cut(words[0], "?") // a webhook may have its key there
		checkURL(key, address, add)
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
