package policy

import (
	"errors"
	"strings"
	"testing"

	"moltisfs/internal/guardfs"
)

func classes(t *testing.T, o ClassOptions) *Classes {
	t.Helper()
	c, err := NewClasses(o)
	must(t, err)
	return c
}

var all = Holds{Secret: true, Exec: true}

// TestSecretsAreClosed: under each name, in each spelling, for each access, and whether or not
// something is there. An allow rule does not open them, and without the class they are open.
func TestSecretsAreClosed(t *testing.T) {
	t.Parallel()
	with, err := New(Options{Allow: []string{"/ws/**", "/ws/.env"}, Classes: classes(t, ClassOptions{Holds: all})})
	must(t, err)
	without, err := New(Options{Allow: []string{"/ws/**"}})
	must(t, err)
	for _, o := range []guardfs.Object{
		{Spelled: "/ws/.env", True: "/ws/.env"},
		{Spelled: "/ws/.ENV", True: "/ws/.ENV"},
		{Spelled: "/ws/.env. ", True: "/ws/.env. "},
		{Spelled: "/ws/.e\u200bnv", True: "/ws/.e\u200bnv"},
		{Spelled: "/ws/.env::$DATA", True: "/ws/.env::$DATA"},
		{Spelled: `/ws/a\.env`, True: `/ws/a\.env`},
		{Spelled: "/ws/ENV~1", True: "/ws/ENV~1"},
		{Spelled: "/ws/a/.SSH/x", True: "/ws/a/.SSH/x"},
		{Spelled: "/ws/AWS~1/credentials", True: "/ws/.aws/credentials"},
		{Spelled: "/ws/l", True: "/ws/.ssh/id_rsa", Hops: []guardfs.Hop{{Name: "/ws/l"}}},
		{Spelled: "/ws/l", True: "/ws/plain", Hops: []guardfs.Hop{{Name: "/ws/l"}, {Name: "/ws/.netrc"}}},
		{Spelled: "/ws/.env", True: "/ws/plain", Hops: []guardfs.Hop{{Name: "/ws/.env"}}},
		{Spelled: "/ws/m", True: "/ws/m", Also: []string{"/ws/.ssh/m"}},
	} {
		for a := guardfs.Look; a <= guardfs.Remove; a++ {
			for _, k := range []guardfs.Kind{guardfs.KindAbsent, guardfs.KindFile} {
				o.Info.Kind = k
				var no *Denied
				if err := with.Judge(o, a); !errors.As(err, &no) || no.Rule != "secret" {
					t.Errorf("%v %v: %v", o, a, err)
				}
				if err := without.Judge(o, a); err != nil {
					t.Errorf("without the class: %v", err)
				}
			}
		}
	}
	for _, name := range []string{"/ws/.env.example", "/ws/cert.pem", "/ws/.git/config", "/ws/Makefile"} {
		must(t, with.Judge(guardfs.Object{Spelled: name, True: name}, guardfs.Create))
	}
}

// TestListingsHideSecrets: entry by entry, as Judge says of each name.
func TestListingsHideSecrets(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Deny: []string{"/ws/x/no"}, Root: "/", Classes: classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/lifted/**"}})})
	must(t, err)
	dirs := []string{"/ws", "/ws/x", "/ws/.aws", "/ws/lifted", "/ws/.Config/GH", "/ws/.aws. ", "/", "/ws/.docker:x"}
	names := []string{"a.go", ".env", ".ENV", ".Env.Local", ".env.example", ".e\u200bnv", "id_rsa", "ID_RSA", "credentials", "Credentials", "hosts.yml",
		"config.json", ".ssh", "ssh~1", "no", "x.KEY", "x.key ", "öffentlich.key", "Makefile", ".git"}
	for _, dir := range dirs {
		v := p.Dir(dir)
		for _, name := range names {
			full := "/" + name
			if dir != "/" {
				full = dir + full
			}
			want := p.Judge(guardfs.Object{Spelled: full, True: full}, guardfs.Look) == nil
			if got := shows(v, name); got != want {
				t.Errorf("%s in %s: shown %v, judged open %v", name, dir, got, want)
			}
			if v.Below == nil {
				continue
			}
			if b, ok := v.Below(name); ok {
				d := p.Dir(full)
				for _, inner := range names {
					if shows(b, inner) != shows(d, inner) {
						t.Errorf("%s in %s: by steps %v, at once not", inner, full, shows(b, inner))
					}
				}
			}
		}
	}
}

// shows says whether a walk with the verdict shows a name.
func shows(v guardfs.DirVerdict, name string) bool {
	return v.All && (v.Hides == nil || !v.Hides(name)) || v.Entry != nil && v.Entry(name, guardfs.KindFile)
}

// TestLifted: by path, each name by itself.
func TestLifted(t *testing.T) {
	t.Parallel()
	real := func(p string) string {
		if p == "/l" || p == "/l/x" {
			return "/real" + p[2:]
		}
		return p
	}
	c := classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/certs/**", "/ws/.env", "/l/x/**"}, Root: "/home/.claude/wt", Canonical: real})
	for name, want := range map[string]Class{
		"/ws/certs/a.key": NoClass, "/ws/certs/.git/config": NoClass, "/ws/.env": NoClass, "/ws/.env/x": NoClass,
		"/ws/.ENV": Secret, "/ws/.env.local": Secret, "/ws/Certs/a.key": Secret, "/real/x/.env": NoClass,
		"/home/.claude/wt": NoClass, "/home/.claude/wt/a.go": NoClass, "/home/.claude/wt/.env": Secret,
		"/home/.claude/wt/a~": NoClass, "/home/.claude/wt/a:b": NoClass, "/home/.claude/wt/ENV~1": Secret,
		`/home/.claude/wt/a\..\..\.env`: Secret, "/home/.claude/other~": Exec, "/home/.claude/other": Exec, "/home/.claude/wt/../x": Exec, "relative/.env": NoClass,
	} {
		if got := c.Of(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	// A link on the way to a lifted name is lifted with it, and for that name only.
	p, err := New(Options{Classes: classes(t, ClassOptions{Holds: all, Lifted: []string{"/ws/.ssh/config"}})})
	must(t, err)
	hops := []guardfs.Hop{{Name: "/ws/.ssh"}}
	for name, open := range map[string]bool{"/ws/.ssh/config": true, "/ws/.ssh/other": false, "/ws/.ssh/config/../other": false} {
		if err := p.Judge(guardfs.Object{Spelled: name, True: "/ws/real/x", Hops: hops}, guardfs.Read); (err == nil) != open {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := p.Judge(guardfs.Object{Spelled: "/ws/.ssh/config", True: "/ws/id_rsa", Hops: hops}, guardfs.Read); err == nil {
		t.Error("a lifted name leads to a secret")
	}
	if _, err := NewClasses(ClassOptions{Lifted: []string{"relative"}}); err == nil {
		t.Error("a relative glob is taken")
	}
}

// TestWorst: what runs code does so under each of its names.
func TestWorst(t *testing.T) {
	t.Parallel()
	c := classes(t, ClassOptions{Holds: all})
	for _, o := range []guardfs.Object{
		{Spelled: "/ws/.vscode/tasks.json", True: "/ws/conf/tasks.json"},
		{Spelled: "/ws/l/config", True: "/ws/.git/config"},
		{Spelled: "/ws/a", True: "/ws/b", Hops: []guardfs.Hop{{Name: "/ws/.bashrc"}}},
		{Spelled: "/ws/a", True: "/ws/b", Hops: []guardfs.Hop{{Name: "/ws/c", Also: []string{"/ws/.bashrc"}}}},
		{Spelled: "/ws/a", True: "/ws/b", Also: []string{"/ws/.GIT/hooks/x"}},
		{Spelled: "/ws/GIT~1/config", True: "/ws/GIT~1/config"},
	} {
		if by, got := c.Worst(o); got != Exec || c.Of(by) != got {
			t.Errorf("%v is %q by %s", o, got, by)
		}
	}
	if _, got := c.Worst(guardfs.Object{Spelled: "/ws/a", True: "/ws/b"}); got != NoClass {
		t.Errorf("a plain file is %q", got)
	}
}

// TestOf: what has a class, and what looks like it and has none.
func TestOf(t *testing.T) {
	t.Parallel()
	for class, names := range map[Class]string{
		Secret: `.ssh .ssh/config .ssh/authorized_keys .gnupg/x/y .env .env.local .env.production .env-prod .env_x .env~
			.env.local.bak .env/lib/x id_rsa id_ed25519 id_ed25519_work id_rsa.bak id_ecdsa_sk id_rsa2 id_rsa.pem
			server.key a.key privkey.pem server-key.pem client_key.pem rsakey.pem private.pem keys.pem key.pem x.p12 x.pfx
			release.keystore app.jks AuthKey_1.p8 x.ppk pw.kdbx .netrc .npmrc .pypirc .git-credentials .aws/credentials
			.aws/sso/cache/x.json .azure/accessTokens.json .config/gcloud/x .kube/config .docker/config.json
			.config/gh/hosts.yml .terraform.d/credentials.tfrc.json .config/google-chrome/default/cookies
			.mozilla/firefox/a.default/logins.json library/application support/google/chrome/default
			client_secret_123.apps.json .claude/.credentials.json .codex/auth.json .cargo/credentials.toml
			appdata/local/google/chrome/user data/x login.keychain-db library/keychains/x etc/ssh/ssh_host_rsa_key
			.config/containers/auth.json .config/sops/age/keys.txt .cache/huggingface/token .huggingface/token
			snap/chromium/common/chromium/default/cookies
			.config/github-copilot/apps.json
			.netrc~ .npmrc.bak .git-credentials.bak .pgpass~ .id_rsa.swp id_rsa.gz id_rsa.txt id_rsa.old.2 id_rsa_backup id_rsa-copy #.env# #id_rsa# .#id_rsa
			server.key.bak server.key~ .server.key.swp server.key.2026-01-02 server.key.txt private.pem.bak x.p12.orig.gz .ssh.bak/config .ssh.tar.gz .gnupg-old/x
			.aws/credentials.bak .aws/#credentials# .aws/.credentials.swp .kube/config.bak .kube/config.1 .docker/config.json~ etc/shadow.dpkg-old
			.netrc.local .claude.json .claude.json.backup .dev.vars deploy_key deploy_rsa github_ed25519 .config/solana/id.json wallet.dat run/secrets/db
			var/run/secrets/kubernetes.io/serviceaccount/token etc/wireguard/wg0.conf etc/kubernetes/admin.conf .cloudflared/cert.pem .config/ngrok/ngrok.yml
			.sbt/.credentials .ivy2/.credentials secring.gpg .bash_history .zsh_history .psql_history .python_history .zhistory .histfile fish_history
			.streamlit/secrets.toml .microsoft/usersecrets/x .sentryclirc`,
		Exec: `.git head sub/head .git/config .git/hooks/pre-commit .git/modules/x/config sub/.git/hooks/x bare.git/hooks/x .gitmodules
			.husky/pre-commit .bashrc .zshrc .profile .envrc .config/autostart/x.desktop cron.d/x crontab
			.config/systemd/user/x.service etc/systemd/system/x.service library/launchagents/x.plist .mcp.json .claude
			.claude/settings.json .cursor/mcp.json .vscode/tasks.json .vscode/launch.json .vscode/settings.json
			.idea/runconfigurations/x.xml .codex/config.toml .gemini/settings.json .zed/settings.json claude.md docs/agents.md
			gemini.md .cursorrules .github/copilot-instructions.md .github/workflows/x.yml .gitlab-ci.yml jenkinsfile
			.circleci/config.yml x.code-workspace .pre-commit-config.yaml .config/fish/config.fish
			.cargo/config.toml .devcontainer/devcontainer.json .git/x.mk
			.agents/skills/x/skill.md .cirrus.yml .semaphore/x.yml azure-pipelines.yaml var/spool/cron/root anacrontab
			.config/code/user/tasks.json .config/environment.d/x.conf mise.toml .hg/hgrc .jj/repo/config.toml .vim/plugin/x.vim
			agent.md .rules .agent/rules/x .copilot/mcp-config.json mcp_config.json cline_mcp_settings.json mcp.yaml .config/zed/settings.json .config/amp/x
			.config/goose/config.yaml .claude-plugin/plugin.json hooks/hooks.json .factory/droids/x.md .kilocode/mcp.json .kilocodemodes .roorules-code
			.clinerules-architect .kilocoderules .continuerules .continuerc.json .augment-guidelines .aiassistant/rules/x .openhands/setup.sh .qoder/x
			.tabnine/x .serena/project.yml .idx/airules.md replit.md claude.local.md skills/x/skill.md .github/skills/x .github/copilot/settings.json
			.dir-locals-2.el .nvim.lua .emacs.el .config/emacs/init.el .config/vim/vimrc .idea/startup.xml .idea/externaldependencies.xml .vs/tasks.vs.json
			.vs/launch.vs.json .theia/tasks.json .helix/config.toml .lvimrc .ycm_extra_conf.py x.sublime-project .fleet/run.json .vscode/c_cpp_properties.json
			.oh-my-zsh/custom/x.zsh .p10k.zsh .fzf.bash .fzf.zsh .nvm/nvm.sh .cargo/env .cargo/bin/x .local/bin/env .zcompdump .bash_completion .shrc .ashrc
			.yashrc .xonshrc .config/elvish/rc.elv .config/tmux/tmux.conf .bashrc.d/x .bashrc.local .zshrc.local .bash_login .zlogout .zprofile
			etc/bashrc etc/zshrc etc/zsh/zshrc etc/gitconfig etc/pam.d/su etc/ssh/sshd_config etc/ld.so.conf.d/x etc/apt/apt.conf.d/x etc/modprobe.d/x
			etc/logrotate.d/x etc/networkmanager/dispatcher.d/x .config/i3/config .config/sway/config .config/hypr/x .config/openbox/autostart
			.config/bspwm/bspwmrc .config/plasma-workspace/env/x.sh .local/share/applications/x.desktop .local/share/dbus-1/services/x .vnc/xstartup
			.forward .procmailrc .tekton/x.yaml .teamcity/settings.kts .builds/x.yml .azure-pipelines/x.yml .gitlab/ci/x.yml bamboo-specs/bamboo.yml
			.drone.star .drone.jsonnet .cirrus.star action.yml action.yaml .gitpod.yml .codesandbox/tasks.json .woodpecker.yaml cloudbuild.yml cloudbuild.json
			buildspec.yaml jenkinsfile.prod jenkinsfile.groovy lefthook-local.yml lefthook.toml .lefthook-local.yml .mise.local.toml mise.local.toml
			.mise/config.toml .pre-commit-config.yaml opencode.jsonc .gitlab-ci.yaml azure-pipelines.yaml .yarn/releases/yarn.cjs`,
		Marked: `package.json makefile sub/makefile rules.mk setup.py pyproject.toml dockerfile composer.json cargo.toml gradlew gradlew.bat
			gradle/wrapper/gradle-wrapper.jar mvnw .bazelrc tools/bazel .pnpmfile.cjs .pnp.cjs bunfig.toml containerfile dockerfile.dev docker-compose.yaml
			compose.yaml eslint.config.mjs .eslintrc.cjs .rubocop.yml rust-toolchain.toml`,
		NoClass: `a.go head/a.go heads .env.example .env.sample .env.local.example .env.template .env.dist .env.defaults .env.d.ts .envoy
			.environment env.go id_rsa.pub id_ed25519.pub id_rsa.go id_rsa_test.py id_token.py etc/ssh/ssh_host_rsa_key.pub ssh_host_key_test.go .cache/huggingface/x containers/auth.json user/tasks.json id_rsax cert.pem ca-bundle.pem
			server.pem monkey.pem turkey-ca.pem keyboard.pem public.key server.pub.key public-key.pem pubkey.pem keys.go key.go
			monkey.go credentials credentials.go src/credentials/x.go config config.json docker/config.json kube/config
			aws/credentials .aws/task-definition.json .docker/dockerfile.md hosts.yml gh/hosts.yml .vscode/snippets.json
			.idea/modules.xml .github/issue_template.md .github/dependabot.yml .gitignore .gitattributes .gitkeep
			workflows/x.yml hooks/x.go systemd/x.go src/google/chrome/x.cc makefile.md makefile/x readme.md~ readme.txt notes.old a.go.orig main.go~ #main.go# .main.go.swp
			.npmrc.example .npmrc.md id_rsa.pub.txt id_rsa.pub.bak public.key.bak ca.pem.bak key.txt keys.txt config.bak credentials.txt config.json~ head.txt head.d
			head.go.bak claude.md.go rsa.go deploy_key.pub x_rsa.go deploy_rsa.pub action.ts action.js mcp.go mcp.js mcp_test.ts server.mcp.md service-account.yaml
			serviceaccount.yaml auth.json nuget.config .prettierrc .babelrc.json .eslint-rules.md firestore.rules history.go history .gitkeep.bak
			hooks/x.json src/tools/x.go run/x etc/hosts etc/ssh/moduli skill.go skills/x.md dockerfile.md package.json/x
			package-lock.json autostart/x.go claude.go readme.md library/cookies/x.go profile .dockerignore .editorconfig`,
	} {
		for name := range strings.FieldsSeq(strings.NewReplacer("application support", "application_support", "user data", "user_data").
			Replace(strings.ToLower(names))) {
			name = strings.NewReplacer("application_support", "application support", "user_data", "user data").Replace(name)
			if got := (Holds{true, true}).Of("/ws/"+name, "/"); got != class {
				t.Errorf("%s is %q, want %q", name, got, class)
			}
			dir, last := "/ws", name
			if i := strings.LastIndexByte(name, '/'); i >= 0 {
				dir, last = "/ws/"+name[:i], name[i+1:]
			}
			above := (Holds{true, true}).Of(dir, "/") == Secret
			if got := isSecretName(last, parentsOf(dir)); !above && got != (class == Secret) {
				t.Errorf("isSecretName(%s in %s) is %v", last, dir, got)
			}
		}
	}
}

// TestHolds: without a class what is left of a name counts.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		holds Holds
		name  string
		want  Class
	}{
		{Holds{Exec: true}, "/ws/.claude/.credentials.json", Exec},
		{Holds{Exec: true}, "/ws/.env", NoClass},
		{Holds{Secret: true}, "/ws/.git/config", NoClass},
		{Holds{Secret: true}, "/ws/.git/makefile", Marked},
		{Holds{}, "/ws/makefile", Marked},
		{Holds{true, true}, "/", NoClass},
	} {
		if got := c.holds.Of(c.name, "/"); got != c.want {
			t.Errorf("%s with %v is %q, want %q", c.name, c.holds, got, c.want)
		}
	}
	// Names above, and that of the directory itself, do not count.
	if got := (Holds{true, true}).Of("/u/.claude/wt/a.go", "/u/.claude/wt"); got != NoClass {
		t.Errorf("below the root: %q", got)
	}
}
