package policy

import (
	"errors"
	"path"
	"strings"

	"moltisfs/internal/glob"
	"moltisfs/internal/guardfs"
)

// The protected classes say by name which files keep secrets and which run code later.
//
// For example ".ssh/id_rsa" and ".env.local" are [Secret], ".git/hooks/pre-commit" and
// ".claude/settings.json" are [Exec], and a Makefile is [Marked]. Names say all: nothing is looked
// at, so a name that leads to nothing has its class too.
//
// Names MUST be folded (foldPath): here they are in small letters, without
// invisible characters, and without dots and blanks at their end. Everything in a directory of a class
// has that class. docs/decisions/0041-protected-classes.md says why each name is here, and why some
// are not.
//
// These are tables and pure functions. They open nothing.

// A Class says how much a name is protected, each more than the one before.
type Class uint8

// The classes. Hard is no matter of names alone, and has none here: it is for what belongs to this
// program.
const (
	NoClass Class = iota
	Marked        // may run code when it is used: a question says so, and nothing else
	Exec          // runs code later, or tells an agent what to do: a change is asked about
	Secret        // keys and passwords: neither read nor changed
	Hard          // ours
)

// String is the class as the configuration, the answers and the records have it.
func (c Class) String() string {
	return [...]string{"", "marked", "exec", "secret", "hard"}[c]
}

// Holds says which classes there are, besides Marked.
type Holds struct{ Secret, Exec bool }

// Of gives the class of a path below dir, and of all that is above it up to dir. Both are folded
// and clean, dir is absolute, and path begins with it. The strongest class counts.
func (h Holds) Of(path, dir string) (worst Class) {
	for at := len(strings.TrimSuffix(dir, "/")); at < len(path); {
		rest := path[at+1:]
		end := strings.IndexByte(rest, '/')
		if end < 0 {
			end = len(rest)
		}
		switch c := entry(path[:at], rest[:end]); {
		case c == Secret && !h.Secret, c == Exec && !h.Exec:
		case (c == Marked || rest[:end] == "head") && end < len(rest): // a directory is something else
		default:
			worst = max(worst, c)
		}
		at += 1 + end
	}
	return worst
}

// IsSecret is for walks, and costs little: whether a name in a directory is Secret by itself.
// parents is the result of Parents for the directory.
func IsSecret(name string, parents Tails) bool {
	if len(name) == 0 {
		return false
	}
	if begins[name[0]] && named[name] == Secret || parents[name] == Secret || secretName(name) {
		return true
	}
	of := original(name)
	if of == name || of == "" {
		return false
	}
	bare := strings.TrimPrefix(of, ".") // vim puts a dot before the name
	return named[of] == Secret || parents[of] == Secret || secretName(of) ||
		bare != "" && (parents[bare] == Secret || secretName(bare))
}

// Tails are the names that have a class in one directory only. Most directories have none.
type Tails map[string]Class

// Parents gives the Tails of a directory, by its folded path.
func Parents(dir string) Tails {
	last := dir[strings.LastIndexByte(dir, '/')+1:]
	for _, t := range tails[last] {
		if strings.HasSuffix(dir, t.dir) {
			return t.names
		}
	}
	return nil
}

// entry is the class of one name in a directory.
func entry(dir, name string) Class {
	if name == "" { // of the root directory
		return NoClass
	}
	parents := Parents(dir)
	if IsSecret(name, parents) {
		return Secret
	}
	of := common(name)
	c := max(named[name], parents[name], named[of], forms[inFormat(of)])
	switch {
	case c < Exec && execName(name):
		return Exec
	case c < Marked && strings.HasSuffix(name, ".mk"):
		return Marked
	}
	return c
}

// original is the name that a file was copied from, by how editors, packers and people call copies:
// id_rsa for id_rsa.txt, id_rsa.gz, id_rsa~, #id_rsa#, .id_rsa.swp and "id_rsa (2)".
func original(name string) string {
	if name[0] == '#' {
		name = strings.TrimSuffix(name[1:], "#")
	}
	name = strings.TrimPrefix(name, ".#")
	for {
		name = strings.TrimRight(name, "~)")
		at := len(name) - 1
		for at > 0 && (letter(name[at]) || '0' <= name[at] && name[at] <= '9') {
			at--
		}
		if at < 1 || !isCopy(name[at+1:]) {
			return name
		}
		name = strings.TrimRight(name[:at], ".-_ (")
	}
}

// isCopy says whether the last word of a name says that it is a copy, or is a number.
func isCopy(word string) bool {
	switch word {
	case "bak", "backup", "bkp", "old", "orig", "original", "save", "saved", "swp", "swo", "swn", "tmp", "temp",
		"txt", "copy", "prev", "previous", "new", "local", "gz", "bz2", "xz", "zst", "lz4", "zip", "tgz", "tar",
		"7z", "rpmsave", "rpmnew", "dpkg", "ucf":
		return true
	}
	return strings.Trim(word, "0123456789") == ""
}

// common is the name that says for everybody what this one says for one place: lefthook.yml for
// lefthook-local.yml, jenkinsfile for jenkinsfile.prod, .bashrc for .bashrc.d.
func common(name string) string {
	if s, rest, ok := strings.Cut(name, "."); ok && strings.HasSuffix(s, "file") && named[s] != NoClass &&
		rest != "md" && rest != "txt" && rest != "rst" {
		return s
	}
	if s, ok := strings.CutSuffix(name, ".d"); ok && name[0] == '.' {
		return s
	}
	for _, local := range []string{".local", "-local"} {
		if s, rest, ok := strings.Cut(name, local); ok && s != "" && (rest == "" || rest[0] == '.') {
			return s + rest
		}
	}
	return name
}

// secretName tries the forms that no table can list: endings, .env and its kin, SSH keys.
func secretName(name string) bool {
	switch name[0] {
	case '.':
		if rest, ok := strings.CutPrefix(name, ".env"); ok {
			return isEnv(rest)
		}
		if strings.HasSuffix(name, "history") {
			return true // of a shell or a database
		}
	case 'i':
		if rest, ok := strings.CutPrefix(name, "id_"); ok && isSSHKey(rest) {
			return true
		}
	case 'c':
		if strings.HasPrefix(name, "client_secret") && strings.HasSuffix(name, ".json") {
			return true
		}
	case 's':
		if strings.HasPrefix(name, "ssh_host_") && strings.HasSuffix(name, "_key") {
			return true
		}
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 {
		return strings.HasSuffix(name, "_rsa") || strings.HasSuffix(name, "_ed25519") // of deploy_rsa
	}
	if len(name)-dot > len(".keychain-db") {
		return false
	}
	switch stem := name[:dot]; name[dot+1:] {
	case "key":
		return !public(stem)
	case "pem":
		return namesKey(stem) && !public(stem)
	case "p12", "pfx", "p8", "jks", "jceks", "bks", "keystore", "ppk", "kdbx", "keytab", "agekey",
		"keychain", "keychain-db":
		return true
	}
	return false
}

// isEnv judges what follows ".env": ".env.local" and ".env-prod" hold secrets, ".envrc" and
// ".environment" are other files, and ".env.example" is there to be read.
func isEnv(rest string) bool {
	if rest == "" {
		return true
	}
	if letter(rest[0]) {
		return false
	}
	switch rest[strings.LastIndexAny(rest, ".-_")+1:] {
	case "example", "examples", "sample", "samples", "template", "templates", "tmpl", "tpl", "dist",
		"default", "defaults", "schema", "ts": // .env.d.ts declares types
		return false
	}
	return true
}

// isSSHKey judges what follows "id_": a private key, and copies of it, but not its public half nor
// a source file that is about one.
func isSSHKey(rest string) bool {
	if public(rest) {
		return false
	}
	for _, kind := range []string{"rsa", "dsa", "ecdsa", "ed25519", "xmss"} {
		more, ok := strings.CutPrefix(rest, kind)
		if !ok || more != "" && letter(more[0]) {
			continue
		}
		_, ext, has := strings.Cut(more, ".")
		switch ext[strings.LastIndexByte(ext, '.')+1:] {
		case "", "bak", "backup", "old", "orig", "save", "swp", "tmp", "pem", "key", "ppk", "asc", "enc":
			return true
		}
		return !has
	}
	return false
}

// namesKey says whether a word of a stem says "private key": *.pem is mostly a certificate.
func namesKey(stem string) bool {
	return anyWord(stem, func(w string) bool {
		switch w {
		case "monkey", "turkey", "donkey", "hockey", "jockey", "whiskey", "keyboard":
			return false
		}
		return strings.HasSuffix(w, "key") || strings.HasPrefix(w, "key") || strings.HasPrefix(w, "priv")
	})
}

// public says whether a stem says "public".
func public(stem string) bool {
	return anyWord(stem, func(w string) bool {
		return strings.HasPrefix(w, "pub") || strings.HasSuffix(w, "pub")
	})
}

func anyWord(stem string, is func(string) bool) bool {
	sign := func(r rune) bool { return r < 0x80 && !letter(byte(r)) }
	for w := range strings.FieldsFuncSeq(stem, sign) {
		if is(w) {
			return true
		}
	}
	return false
}

// letter is for folded names: ASCII letters and all beyond ASCII.
func letter(c byte) bool { return 'a' <= c && c <= 'z' || c >= 0x80 }

// execName tries what no table can list: bare repositories, workspaces, run configurations, what
// shells and vims read at their start, rules for agents, and the servers that an agent starts.
func execName(name string) bool {
	for _, end := range []string{".git", ".code-workspace", ".sublime-project", ".run.xml"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	if stem, ok := strings.CutSuffix(inFormat(name), ".yml"); ok {
		return anyWord(stem, func(w string) bool { return w == "mcp" })
	}
	stem, ok := strings.CutPrefix(common(name), ".")
	if !ok {
		return false
	}
	for _, end := range []string{"shrc", "vimrc", "profile", "login", "logout"} {
		if strings.HasSuffix(stem, end) {
			return true
		}
	}
	stem, _, _ = strings.Cut(stem, "-") // .roorules-code
	return strings.HasSuffix(stem, "rules")
}

// named are the names that have their class in any directory.
var named = merged(
	class(Secret, `.ssh .gnupg .azure .password-store .netrc _netrc .authinfo .pgpass
		.my.cnf .mylogin.cnf .npmrc .pypirc .git-credentials .htpasswd .vault-token .databrickscfg
		.s3cfg .boto .dockercfg .terraformrc terraform.rc credentials.tfrc.json rclone.conf
		.credentials.json oauth_creds.json application_default_credentials.json service-account.json
		service_account.json service-account-key.json serviceaccountkey.json .mozilla .thunderbird
		.librewolf key3.db key4.db cookies.sqlite cookies.binarycookies .claude.json .credentials .dev.vars
		.sentryclirc .cloudflared .ngrok2 deploy_key secring.gpg wallet.dat .histfile fish_history .lesshst
		.viminfo`),
	// Files that a shell or a program of a person reads by itself.
	class(Exec, `.bash_aliases .bash_completion .zshenv .zcompdump .inputrc .envrc .direnvrc .oh-my-zsh
		.p10k.zsh .fzf.bash .fzf.zsh .nvm .mise .mise.toml mise.toml .xinitrc .xsession .xsessionrc .pam_environment
		.vnc .forward .procmailrc .exrc .vim .nvim.lua .dir-locals.el .dir-locals-2.el .emacs .emacs.el
		.emacs.d .helix .ycm_extra_conf.py .tmux.conf .screenrc .gdbinit .lldbinit .pdbrc .irbrc .pryrc
		.yarnrc .yarnrc.yml sitecustomize.py usercustomize.py profile.ps1 microsoft.powershell_profile.ps1`),
	// Git's own, and what runs at a commit. A file HEAD makes a repository of the directory beside it.
	class(Exec, `head .git .gitconfig .gitmodules .husky .githooks .pre-commit-config.yml
		lefthook.yml .lefthook.yml .overcommit.yml .hg
		.hgrc .jj`),
	// Files that an agent or an editor obeys.
	class(Exec, `claude_desktop_config.json .claude .claude-plugin .cursor .codex
		.copilot .gemini .zed .windsurf .continue .roo .cline .roomodes .amazonq .kiro .junie
		.opencode .qwen .crush .goose .augment .augment-guidelines .trae .agent .agents .codeium .factory .kilocode
		.kilocodemodes .continuerc.json .aiassistant .openhands .qoder .tabnine .serena .idx .replit .fleet .theia
		.codesandbox .gitpod.yml .aider.conf.yml .devcontainer .devcontainer.json claude.md agent.md agents.md
		agents.override.md skill.md gemini.md qwen.md crush.md warp.md replit.md airules.md .goosehints
		copilot-instructions.md opencode.json crush.json`),
	// Files that run at a push, at a start or by the clock.
	class(Exec, `.circleci .buildkite .woodpecker .gitlab-ci.yml .travis.yml .drone.yml .cirrus.yml .semaphore
		.woodpecker.yml .tekton .teamcity .builds .build.yml .azure-pipelines bamboo-specs action.yml
		appveyor.yml .appveyor.yml azure-pipelines.yml bitbucket-pipelines.yml cloudbuild.yml buildspec.yml jenkinsfile crontab anacrontab cron.d cron.hourly cron.daily
		cron.weekly cron.monthly launchagents launchdaemons ld.so.preload rc.local`),
	class(Marked, `package.json makefile gnumakefile justfile .justfile rakefile gemfile
		setup.py setup.cfg pyproject.toml conftest.py noxfile.py tox.ini build.gradle build.gradle.kts
		settings.gradle settings.gradle.kts pom.xml build.rs cmakelists.txt dockerfile
		containerfile docker-compose.yml compose.yml taskfile.yml vagrantfile flake.nix composer.json cargo.toml
		gradlew gradlew.bat mvnw mvnw.cmd gradle-wrapper.jar gradle-wrapper.properties .bazelrc .pnpmfile.cjs
		.pnp.cjs bunfig.toml rust-toolchain.toml .pylintrc .rubocop.yml .luacheckrc .eslintrc.js eslint.config.js`),
)

// forms are the names of Exec and Marked that may be written in several formats, as inFormat gives them.
var forms = formats()

func formats() Tails {
	out := Tails{}
	for n, c := range named {
		if form := inFormat(n); form != "" && c < Secret {
			out[form] = max(out[form], c)
		}
	}
	return out
}

// inFormat is a name with the ending of its kind of format: x.yml for x.toml and x.json, x.js for
// x.mjs. "" for a name in another format.
func inFormat(name string) string {
	dot := strings.LastIndexByte(name, '.')
	if dot < 1 {
		return ""
	}
	switch name[dot+1:] {
	case "yml", "yaml", "toml", "json", "jsonc", "json5", "jsonnet", "star":
		return name[:dot] + ".yml"
	case "js", "cjs", "mjs", "ts", "cts", "mts":
		return name[:dot] + ".js"
	}
	return ""
}

// begins are the first bytes of the secret ones.
var begins = firsts()

func firsts() (out [256]bool) {
	for n, c := range named {
		out[n[0]] = out[n[0]] || c == Secret
	}
	return out
}

// A tail is a directory by the end of its path, and the names that have a class in it alone.
type tail struct {
	dir   string // begins with a slash
	names Tails
}

// tails are by the last name of their directory.
var tails = byLast(
	tail{"/.aws", class(Secret, "credentials config sso cli")},
	tail{"/.kube", class(Secret, "config cache")},
	tail{"/.docker", class(Secret, "config.json")},
	tail{"/.cargo", merged(class(Secret, "credentials credentials.toml"),
		class(Exec, "config config.toml env bin"))},
	tail{"/.gem", class(Secret, "credentials")},
	tail{"/.m2", class(Secret, "settings.xml settings-security.xml")},
	tail{"/.gradle", merged(class(Secret, "gradle.properties"), class(Exec, "init.gradle init.d"))},
	tail{"/.streamlit", class(Secret, "secrets.toml")},
	tail{"/.microsoft", class(Secret, "usersecrets")},
	tail{"/solana", class(Secret, "id.json")},
	tail{"/run", class(Secret, "secrets")},
	tail{"/.oci", class(Secret, "config")},
	tail{"/.config/containers", class(Secret, "auth.json")}, // of podman
	tail{"/sops/age", class(Secret, "keys.txt")},
	tail{"/.cache/huggingface", class(Secret, "token stored_tokens")},
	tail{"/.huggingface", class(Secret, "token")},
	tail{"/library", class(Secret, "keychains")},
	tail{"/snap/chromium/common", class(Secret, "chromium")},
	tail{"/.fly", class(Secret, "config.yml")},
	tail{"/.composer", class(Secret, "auth.json")},
	tail{"/.codex", class(Secret, "auth.json")},
	tail{"/.nuget/nuget", class(Secret, "nuget.config")},
	tail{"/.config", merged(class(Secret, `gcloud hub op doctl ngrok github-copilot google-chrome
		google-chrome-beta chromium bravesoftware microsoft-edge vivaldi opera`),
		class(Exec, `fish nushell elvish xonsh zsh tmux nvim vim emacs helix zed amp goose autostart environment.d
			plasma-workspace i3 sway hypr openbox bspwm awesome xmonad qtile direnv mise`))},
	tail{"/.config/gh", class(Secret, "hosts.yml")},
	tail{"/.config/glab-cli", class(Secret, "config.yml")},
	tail{"/.config/git", merged(class(Secret, "credentials"), class(Exec, "config attributes"))},
	tail{"/.config/composer", class(Secret, "auth.json")},
	tail{"/.config/systemd", class(Exec, "user")},
	tail{"/github cli", class(Secret, "hosts.yml")},
	tail{"/.local/share/opencode", class(Secret, "auth.json")},
	tail{"/.local/share", merged(class(Secret, "keyrings kwalletd"), class(Exec, "applications dbus-1 systemd"))},
	tail{"/.local", class(Exec, "bin")},
	tail{"/.yarn", class(Exec, "releases plugins")},
	tail{"/hooks", class(Exec, "hooks.json")},
	tail{"/tools", class(Marked, "bazel")},
	tail{"/.var/app", class(Secret, "org.mozilla.firefox com.google.chrome org.chromium.chromium")},
	tail{"/application support", Tails{"firefox": Secret, "chromium": Secret, "bravesoftware": Secret,
		"microsoft edge": Secret}},
	tail{"/application support/google", class(Secret, "chrome")},
	tail{"/local/google", class(Secret, "chrome")}, // below AppData, as the next two
	tail{"/local/microsoft", class(Secret, "edge")},
	tail{"/roaming/mozilla", class(Secret, "firefox")},
	tail{"/appdata/roaming", class(Secret, "gcloud")},
	tail{"/start menu/programs", class(Exec, "startup")},

	tail{"/.vscode", class(Exec, "tasks.json launch.json settings.json c_cpp_properties.json")},
	tail{"/.vs", class(Exec, "tasks.vs.json launch.vs.json")},
	tail{"/.gitlab", class(Exec, "ci")},
	tail{"/.idea", class(Exec, "runconfigurations workspace.xml watchertasks.xml startup.xml externaldependencies.xml tools")},
	tail{"/.github", class(Exec, "workflows actions instructions prompts agents skills copilot chatmodes hooks")},
	tail{"/.gitea", class(Exec, "workflows")},
	tail{"/.forgejo", class(Exec, "workflows")},
	tail{"/systemd", class(Exec, "system user")},
	tail{"/cron", class(Exec, "crontabs tabs")},
	tail{"/var/spool", class(Exec, "cron")},
	tail{"/.config/code/user", class(Exec, "tasks.json settings.json")},
	tail{"/xdg", class(Exec, "autostart")},
	tail{"/udev", class(Exec, "rules.d")},
	tail{"/etc", merged(class(Secret, "shadow shadow- gshadow gshadow-"),
		class(Secret, "wireguard"),
		class(Exec, `init.d environment profile profile.d bash.bashrc bashrc zshrc zshenv zprofile zsh csh.cshrc
			gitconfig sudoers sudoers.d pam.d ld.so.conf ld.so.conf.d modprobe.d logrotate.d`))},
	tail{"/etc/ssh", class(Exec, "sshd_config sshd_config.d ssh_config ssh_config.d")},
	tail{"/etc/apt", class(Exec, "apt.conf apt.conf.d")},
	tail{"/etc/networkmanager", class(Exec, "dispatcher.d")},
	tail{"/etc/kubernetes", class(Secret, "admin.conf super-admin.conf kubelet.conf controller-manager.conf scheduler.conf pki")},
	tail{"/etc/ssl", class(Secret, "private")},
)

func class(c Class, names string) Tails {
	out := Tails{}
	for _, n := range strings.Fields(names) {
		out[n] = c
	}
	return out
}

func merged(all ...Tails) Tails {
	out := Tails{}
	for _, one := range all {
		for n, c := range one {
			out[n] = max(out[n], c)
		}
	}
	return out
}

func byLast(all ...tail) map[string][]tail {
	out := map[string][]tail{}
	for _, t := range all {
		last := t.dir[strings.LastIndexByte(t.dir, '/')+1:]
		out[last] = append(out[last], t)
	}
	return out
}

// Names are the names of the tables, for whoever has to know their short forms.
func ProtectedNames() (out []string) {
	for n, c := range named {
		if c > Marked {
			out = append(out, n)
		}
	}
	for _, of := range tails {
		for _, t := range of {
			for n := range t.names {
				out = append(out, n)
			}
		}
	}
	return append(out, ".env", ".bashrc", ".zshrc", ".profile", ".bash_profile", ".vimrc", ".mcp.json", ".bash_history")
}

// ClassOptions says which classes of names hold, and where they do not.
type ClassOptions struct {
	Holds

	// Lifted are absolute globs, exact as those of an allow list. A path that one covers has no class, nor has a path
	// below it. A name is lifted by itself: a link to a lifted file is not.
	Lifted []string
	// Root is where the work is: the names of that directory and of those above it make no class.
	Root      string
	Canonical func(path string) string // as in Options
}

// Classes are the protected classes, as the operator wants them. nil has none.
// It does not change, and is safe for concurrent use.
type Classes struct {
	holds      Holds
	lifted     node
	roots      []string // spelled, and with links followed
	shortNames []shortName
}

// NewClasses compiles the globs. The error joins one *RuleError for each bad one.
func NewClasses(o ClassOptions) (*Classes, error) {
	if o.Canonical == nil {
		o.Canonical = path.Clean
	}
	c := &Classes{holds: o.Holds}
	var errs []error
	for _, pattern := range o.Lifted {
		g, err := glob.CompileRule(pattern, nil)
		if err != nil {
			errs = append(errs, ruleError(pattern, err))
			continue
		}
		for _, e := range g.Patterns() {
			root := "/" + strings.Join(e.Literal(), "/")
			c.lifted.insert(e.Literal(), rule{denied, e})
			if real := path.Clean(o.Canonical(root)); real != root {
				c.lifted.insert(segments(real), rule{denied, e})
			}
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	if o.Root != "" {
		c.roots = []string{path.Clean(o.Root), path.Clean(o.Canonical(o.Root))}
	}
	for _, name := range ProtectedNames() {
		if s, ok := newShortName(name); ok {
			c.shortNames = append(c.shortNames, s)
		}
	}
	return c, nil
}

// Of gives the class of an absolute name, by itself: links are not followed. The worst
// reading of a name that some file system may read in several ways counts.
func (c *Classes) Of(name string) Class {
	if c == nil || !strings.HasPrefix(name, "/") {
		return NoClass
	}
	name = path.Clean(name)
	dir := "/"
	for _, r := range c.roots {
		if (name == r || strings.HasPrefix(name, strings.TrimSuffix(r, "/")+"/")) && len(r) > len(dir) {
			dir = r
		}
	}
	dir = strings.TrimSuffix(dir, "/")
	top, rest := foldPath(dir), name[len(dir):] // above, no reading of a name counts either
	folded := foldPath(rest)
	worst := c.holds.Of(top+folded, top)
	if ambiguous(rest) {
		for _, reading := range []string{folded, asNTFS(folded)} {
			longer, ok := expandShortNames(reading, c.shortNames)
			if !ok {
				return Secret // too many readings to try
			}
			for _, r := range append(longer, reading) {
				worst = max(worst, c.holds.Of(top+r, top))
			}
		}
	}
	if worst > NoClass && c.Lifted(name) {
		return NoClass
	}
	return worst
}

// Lifted says whether no class holds for a clean real name.
func (c *Classes) Lifted(name string) bool { return c.lifted.refuses(name) != none }

// Worst is the class of an object by all of its names, as it was spelled, as it is, and by what the
// way there passes; with the first name that has it.
func (c *Classes) Worst(o guardfs.Object) (by string, worst Class) {
	names := append([]string{o.Spelled, o.True}, o.Also...)
	for _, hop := range o.Hops {
		names = append(append(names, hop.Name), hop.Also...)
	}
	for _, name := range names {
		if is := c.Of(name); is > worst {
			by, worst = name, is
		}
	}
	return by, worst
}

// isSecret says whether a name, or one of those that it has on other mounts, is secret.
func (c *Classes) isSecret(name string, also []string) bool {
	if c == nil || !c.holds.Secret {
		return false
	}
	if c.Of(name) == Secret {
		return true
	}
	for _, other := range also {
		if c.Of(other) == Secret {
			return true
		}
	}
	return false
}

// secretsIn tells which entries of one directory, by one of its names, are secrets.
type secretsIn struct {
	classes   *Classes
	dir       string
	ambiguous bool // dir is
	parents   Tails
}

func (c *Classes) in(dir string) *secretsIn {
	if c == nil || !c.holds.Secret {
		return nil
	}
	return &secretsIn{c, dir, ambiguous(dir), Parents(foldPath(dir))}
}

// verdict gives the verdict for a directory in which all is open but secrets, and so it is below.
func (s *secretsIn) verdict() guardfs.DirVerdict {
	if s == nil {
		return guardfs.DirVerdict{All: true}
	}
	return guardfs.DirVerdict{All: true, Hides: s.hides,
		Below: func(name string) (guardfs.DirVerdict, bool) {
			if s.hides(name) {
				return guardfs.DirVerdict{}, true
			}
			return s.classes.in(strings.TrimSuffix(s.dir, "/") + "/" + name).verdict(), true
		}}
}

// hides judges one entry; the directory itself is not secret. Most names fold to themselves, and
// are tried without an allocation.
func (s *secretsIn) hides(name string) bool {
	if s == nil {
		return false
	}
	if s.ambiguous || ambiguous(name) {
		return s.whole(name)
	}
	if foldsToItself(name) {
		return IsSecret(name, s.parents) && s.whole(name)
	}
	var buf [32]byte
	if n := lowered(name, &buf); n > 0 {
		return IsSecret(string(buf[:n]), s.parents) && s.whole(name)
	}
	return s.whole(name)
}

func (s *secretsIn) whole(name string) bool {
	return s.classes.Of(strings.TrimSuffix(s.dir, "/")+"/"+name) == Secret
}
