// Waiting: the changes that need an answer, their diffs, and the answer.
import { $, h, fill, esc, plain, dim, kbd, button, empty, count, counts, pathNodes, pathText, names, at, left, clock, below, confirm, say, saved } from './dom.js';
import { rpc, SignedOut } from './server.js';
import { fileBox, ofQuestion } from './diff.js';
import { S, href, route, goto, frame, failed } from './state.js';

const W = { why: '', side: saved.get('side', '') === '1', armed: '', files: new Map(), read: new Map(), busy: new Set() };
const wide = matchMedia('(min-width: 900px)');

export const pending = () => S.approvals.filter(e => e.state === 'pending');
const entryOf = id => S.approvals.find(e => e.id === id);
const isMine = e => e.principal === S.me.principal;
const runsCode = e => e.code?.length > 0;
const who = e => [e.principal, e.client].filter(Boolean).join(' · ');
const what = e => !e.paths.length ? '' : e.paths.length === 1 ? pathNodes(e.paths[0]) : h('span', { class: 'path-n' }, count(e.paths.length, 'file'));
const whatText = e => !e.paths.length ? plain(e.summary) : e.paths.length === 1 ? pathText(e.paths[0]).split('/').at(-1) : count(e.paths.length, 'file');

// fate says what became of a question.
function fate(e) {
  const when = e.answered ? ' at ' + at(e.answered).textContent : '', why = e.reason ? `: “${plain(e.reason)}”` : '';
  return { pending: 'waits', approved: `approved by ${plain(e.by)}${when}${why}`, denied: `denied by ${plain(e.by)}${when}${why}`,
    expired: 'expired: nobody answered in time', cancelled: 'cancelled by its caller' }[e.state] ?? 'gone: the process that asked has ended';
}

// away says why the list can't be read; '' if it was read.
export const away = () => W.why;

// refresh reads the list anew and compares: what is gone is over, what is new comes last.
export async function refresh() {
  let now;
  const was = W.why;
  try { ({ approvals: now } = await rpc('approvals.list')); W.why = ''; } catch (err) { W.why = err.message; throw err; }
  if (was) say('');
  if (was && !S.approvals.length && route().view === 'waiting') goto(location.hash || href('waiting'), true, true);
  const ids = new Set(now.map(e => e.id));
  const gone = pending().filter(e => !ids.has(e.id));
  if (gone.length) {
    const { approvals: all } = await rpc('approvals.list', { all: true });
    for (const e of gone) over(all.find(x => x.id === e.id) ?? { id: e.id, state: 'gone' });
  }
  for (const e of now) asked(e, true);
}

// asked takes a question in. The oldest is first, so a new one comes last, below all that is read.
export function asked(entry, quiet) {
  if (entryOf(entry.id)) return;
  entry.paths ??= []; // a program has none
  const first = !S.approvals.length;
  S.approvals.push(entry);
  if (route().view === 'waiting') {
    if (first || !$('wlist')) goto(location.hash || href('waiting'), true);
    else $('wlist').append(row(entry));
  }
  if (!quiet) say(`A change waits: ${plain(entry.tool)} ${whatText(entry)}, ${plain(entry.principal)}.`);
  frame();
  tick();
}

// over notes what became of a question that somebody answered, or that nobody did.
export function over(entry) {
  const e = entryOf(entry.id);
  if (!e || e.state !== 'pending') return;
  const byMe = W.busy.has(e.id);
  Object.assign(e, entry);
  if (!byMe) say(`${whatText(e)}: ${fate(e)}.`);
  changed(e, byMe);
}

function row(e) {
  const done = e.state !== 'pending', n = e.warnings?.length;
  return h('li', { 'data-id': e.id, class: done ? 'over' : null }, h('a', { href: href('waiting', e.id), 'aria-current': route().id === e.id ? 'true' : null },
    h('span', { class: 'l1' }, h('b', {}, esc(e.tool)), ' ', what(e), ' ', counts(e.added, e.removed)),
    h('span', { class: 'l2' }, h('span', { class: 'who' }, esc(who(e))), h('span', { class: 'left', 'data-until': e.expires })),
    h('span', { class: 'l3', title: done ? fate(e) : null }, done ? fate(e) :
      n ? h('span', { class: 'warn-t' }, runsCode(e) ? '⚠ runs code' : '⚠ ' + count(n, 'warning')) : esc(below(e.summary)))));
}

export function waiting(r) {
  if (!S.approvals.length && W.why) return empty('What waits can’t be shown.', plain(W.why));
  if (!S.approvals.length) {
    return empty('Nothing waits.', 'A change that needs an answer comes here by itself, and the title of this page counts it. Until then: ',
      h('a', { href: href('timeline') }, 'what was changed'), '.');
  }
  if (!r.id && wide.matches) {
    history.replaceState(null, '', href('waiting', (pending()[0] ?? S.approvals[0]).id));
  }
  return h('div', { class: 'split' }, h('div', { class: 'left-pane' },
    h('div', { class: 'bar' }, h('span', { id: 'wcount' }), button(['Approve all read ', kbd('A')], approveAll, 'quiet')),
    h('ul', { class: 'rows', id: 'wlist' }, S.approvals.map(row)),
    h('p', { class: 'tidy' }, button('Remove the answered from this list', tidy, 'quiet'))), h('div', { class: 'detail', id: 'detail' }));
}
waiting.quiet = true;
waiting.ready = () => { detail(route().id); tick(); };
waiting.update = r => {
  if (!$('wlist')) return false;
  for (const a of document.querySelectorAll('#wlist a')) {
    if (a.parentNode.dataset.id === r.id) a.setAttribute('aria-current', 'true'); else a.removeAttribute('aria-current');
  }
  detail(r.id);
  return true;
};

let watch;

async function detail(id) {
  const box = $('detail'), e = entryOf(id);
  if (!box) return;
  box.parentNode.classList.toggle('has', !!e);
  W.armed = '';
  if (!e) return fill(box, id ? empty('That question is over.', 'It was answered or has expired. The ', h('a', { href: href('audit') }, 'audit log'), ' has what became of it.') :
    h('p', { class: 'empty' }, 'Choose one to read it.'));
  if (!W.files.has(id)) {
    fill(box, h('p', { class: 'empty' }, 'Reading…'));
    try {
      const { approval } = await rpc('approvals.show', { id });
      if (approval.state !== 'pending') over(approval);
      else { for (const k of ['warnings', 'code', 'client']) if (approval[k]) e[k] = approval[k]; }
      W.files.set(id, ofQuestion(approval));
    } catch (err) {
      if (err instanceof SignedOut) return failed(err);
      return fill(box, empty('It can’t be shown.', plain(err.message)));
    }
  }
  if (!box.isConnected || route().view !== 'waiting' || route().id !== id) return;
  const files = W.files.get(id), many = files.length > 1, side = W.side && wide.matches;
  if (!W.read.has(id)) W.read.set(id, new Set());
  const facts = [['Who', esc(e.principal)], ['Session', esc(e.session)], ['With', e.client ? esc(e.client) : null], ['Asked', at(e.asked)], ['What', esc(below(e.summary))],
    ['Place', e.paths.length === 1 ? pathNodes(e.paths[0], false) : names.root ? pathNodes(names.root, false) : null]].filter(([, v]) => v && (!Array.isArray(v) || v.join('')));
  fill(box, h('a', { class: 'back', href: href('waiting') }, '‹ all that wait'),
    h('h2', { id: 'dh', tabindex: '-1' }, esc(e.tool), ' ', what(e), ' ', counts(e.added, e.removed)),
    h('dl', { class: 'meta' }, facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
    e.warnings?.length ? h('ul', { class: 'warnings', 'aria-label': 'Warnings' }, e.warnings.map(w => h('li', {}, h('span', { 'aria-hidden': 'true' }, '⚠ '), esc(below(w))))) : null,
    h('div', { class: 'bar answer', id: 'answer', role: 'group', 'aria-label': 'Your answer' }),
    many ? h('details', { class: 'toc', open: true }, h('summary', {}, count(files.length, 'file'), ' ', h('span', { class: 'dim only-wide' }, kbd('['), ' ', kbd(']'), ' step through them')),
      h('ol', { tabindex: '0', 'aria-label': 'Files' }, files.map((f, i) => h('li', { 'data-i': i }, h('a', { href: href('waiting', id), onclick: ev => { ev.preventDefault(); toFile(i); } },
        f.note === undefined ? pathNodes(f.path) : esc(f.note)), f.rows.length ? counts(f.added, f.removed) : null)))) : null,
    h('div', { class: 'files', id: 'files' }));
  answerBar(e);
  showFiles(e, side);
}

// showFiles puts the diffs in their place. What came into view to its end, in the window in front, is read.
function showFiles(e, side) {
  const box = $('files'), read = W.read.get(e.id);
  fill(box, W.files.get(e.id).map((f, i) => fileBox(f, i, side)));
  watch?.disconnect();
  const note = i => document.querySelector(`.toc li[data-i="${i}"]`)?.classList.add('seen');
  watch = new IntersectionObserver(all => {
    for (const x of all) {
      if (!x.isIntersecting || document.visibilityState !== 'visible' || x.target.dataset.cuts !== '0') continue;
      read.add(+x.target.dataset.i);
      note(x.target.dataset.i);
    }
    readState(e);
  });
  const ends = [...box.querySelectorAll('.end-of-file')];
  for (const end of ends) { watch.observe(end); end.addEventListener('whole', () => { watch.unobserve(end); watch.observe(end); }); }
  read.forEach(note);
}

const isRead = e => W.files.has(e.id) && (W.read.get(e.id)?.size ?? 0) >= W.files.get(e.id).length;

function readState(e) {
  const all = W.files.get(e.id)?.length ?? 0, n = W.read.get(e.id)?.size ?? 0;
  if (route().id === e.id && $('read')) $('read').textContent = n >= all ? 'read to the end' : all > 1 ? `read ${n} of ${all} files` : 'not read to the end';
}

function answerBar(e) {
  const bar = $('answer'), mine = isMine(e);
  if (!bar) return;
  if (e.state !== 'pending') {
    return fill(bar, h('b', { class: 'fate', title: fate(e) }, fate(e)),
      e.state === 'approved' ? h('a', { href: href('timeline', '', { session: e.session }) }, 'to its undo') : null);
  }
  fill(bar, h('button', { type: 'button', class: 'strong fixed', id: 'yes', 'aria-keyshortcuts': 'a', disabled: mine, onclick: () => approve(e) }, 'Approve ', kbd('a')),
    h('button', { type: 'button', id: 'no', 'aria-keyshortcuts': 'd', disabled: mine, onclick: () => denyForm(e) }, 'Deny… ', kbd('d')),
    h('span', { class: 'left', 'data-until': e.expires, 'data-words': ' left' }), h('span', { class: 'dim', id: 'read' }),
    mine ? dim('you asked this: somebody else answers') : null, h('span', { class: 'push' }),
    h('button', { type: 'button', class: 'quiet only-wide', id: 'side', 'aria-pressed': String(W.side), 'aria-keyshortcuts': 's', onclick: toggleSide }, 'Side by side ', kbd('s')));
  readState(e);
  tick();
}

// approve answers with yes. Where the change runs code, or was not read, a second and different press is needed: a click, or Enter.
function approve(e) {
  const why = [runsCode(e) ? 'runs code' : '', isRead(e) ? '' : 'not read to its end'].filter(Boolean).join(', ');
  if (why && W.armed !== e.id) {
    W.armed = e.id;
    const b = $('yes');
    fill(b, 'Approve: ' + why, ' ', kbd('⏎'));
    b.classList.add('danger');
    b.focus({ preventScroll: true });
    return say(`This change ${runsCode(e) ? 'runs code later' : 'was not read to its end'}. Enter approves it all the same; Esc leaves it.`);
  }
  return answer(e, 'approvals.approve', '');
}

function disarm() {
  const e = entryOf(W.armed);
  W.armed = '';
  if (e) { answerBar(e); say(''); $('yes')?.focus({ preventScroll: true }); }
}

const MOST = 4096; // bytes of a reason

function denyForm(e) {
  W.armed = '';
  const back = () => { answerBar(e); $('no')?.focus(); };
  const input = h('input', { id: 'why', autocomplete: 'off', placeholder: 'why (the agent is told; may stay empty)', 'aria-label': 'Why not? The agent is told. It may stay empty.' });
  fill($('answer'), h('form', { class: 'why', onsubmit: ev => {
    ev.preventDefault();
    const n = new TextEncoder().encode(input.value).length;
    if (n > MOST) return say(`A reason has at most ${MOST} bytes, and this one has ${n}.`);
    answer(e, 'approvals.deny', input.value);
  }, onkeydown: ev => { if (ev.key === 'Escape') { ev.stopPropagation(); back(); } } },
  input, h('button', { class: 'danger' }, 'Deny ', kbd('⏎')), button(['Back ', kbd('Esc')], back, 'quiet'), h('span', { class: 'left', 'data-until': e.expires })));
  input.focus();
  tick();
}

const TOO_LATE = -32006;

async function answer(e, method, reason) {
  if (W.busy.has(e.id)) return;
  W.busy.add(e.id);
  try {
    const { approval } = await rpc(method, reason ? { id: e.id, reason } : { id: e.id });
    if (e.state === 'pending') Object.assign(e, approval);
    const more = pending().length;
    say(`${e.state === 'denied' ? 'Denied' : 'Approved'}: ${plain(e.tool)} ${whatText(e)}. ${more ? count(more, 'other waits', 'others wait') + ': j goes on.' : 'Nothing else waits.'}`);
  } catch (err) {
    if (err instanceof SignedOut) return failed(err);
    say(plain(err.message));
    if (err.code === TOO_LATE || err.code === -32005) await rpc('approvals.show', { id: e.id }).then(r => Object.assign(e, r.approval), () => Object.assign(e, { state: 'gone' }));
  } finally { W.busy.delete(e.id); }
  changed(e, true);
}

// changed shows a question anew in its place: nothing else moves, and the focus stays.
function changed(e, byMe) {
  const li = document.querySelector(`#wlist li[data-id="${CSS.escape(e.id)}"]`);
  if (li) {
    const had = li.contains(document.activeElement), now = row(e);
    li.replaceWith(now);
    if (had) now.firstChild.focus({ preventScroll: true });
  }
  frame();
  tick();
  if (route().view !== 'waiting' || route().id !== e.id) return;
  const held = document.activeElement?.closest?.('#answer'), typed = !byMe && document.activeElement?.id === 'why' && document.activeElement.value;
  W.armed = '';
  answerBar(e);
  if (held) $('dh')?.focus({ preventScroll: true });
  if (typed) say(`Too late: ${fate(e)}. Your words were not sent: “${plain(typed)}”`);
}

// approveAll approves, after one more question, all that was read and carries no warning.
async function approveAll() {
  const ready = pending().filter(e => isRead(e) && !e.warnings?.length && !isMine(e)), rest = pending().filter(e => !ready.includes(e));
  const li = e => h('li', {}, h('b', {}, esc(e.tool)), ' ', what(e), ' ', counts(e.added, e.removed), ' ', dim(esc(e.principal)));
  const yes = await confirm(ready.length ? `Approve ${count(ready.length, 'change')} that you have read?` : 'Nothing to approve at once', [h('ul', { class: 'plainlist' }, ready.map(li)),
    rest.length ? [h('p', {}, 'These stay: not read to their end, or with a warning, which is answered by itself.'), h('ul', { class: 'plainlist dim' }, rest.map(li))] : null],
  `Approve ${ready.length}`, { check: () => ready.length > 0 });
  if (yes) for (const e of ready) if (e.state === 'pending') await answer(e, 'approvals.approve', '');
}

function tidy() {
  S.approvals = pending();
  goto(href('waiting'), true, true);
}

function toggleSide() {
  const e = entryOf(route().id);
  W.side = !W.side;
  saved.set('side', W.side ? '1' : '');
  if (e && W.files.has(e.id)) showFiles(e, W.side && wide.matches);
  $('side')?.setAttribute('aria-pressed', String(W.side));
}

function toFile(i) {
  const f = document.querySelectorAll('#files > .file')[i];
  if (!f) return;
  f.tabIndex = -1;
  f.scrollIntoView({ block: 'start' });
  f.focus({ preventScroll: true });
  say(`File ${i + 1} of ${document.querySelectorAll('#files > .file').length}`);
}

function stepFile(by) {
  const all = [...document.querySelectorAll('#files > .file')], now = all.indexOf(document.activeElement?.closest?.('.file'));
  toFile(Math.max(0, Math.min(all.length - 1, now + by)));
}

function step(by) {
  const list = S.approvals, from = list.findIndex(e => e.id === route().id);
  let i = (from < 0 ? by > 0 ? -1 : list.length : from) + by;
  const ahead = by > 0 ? list.slice(i) : list.slice(0, i + 1);
  if (ahead.some(e => e.state === 'pending')) while (list[i].state !== 'pending') i += by;
  if (!list[i]) return say(by > 0 ? 'That was the last.' : 'That was the first.');
  goto(href('waiting', list[i].id), true);
  scrollTo(0, 0);
  const a = document.querySelector('#wlist a[aria-current]');
  a?.focus({ preventScroll: true });
  a?.scrollIntoView({ block: 'nearest' });
}

// tick changes the text of clocks; their width stays. The server decides when a question is over.
export function tick() {
  for (const el of document.querySelectorAll('[data-until]')) {
    const ms = new Date(el.dataset.until) - clock.now(), e = entryOf(el.closest('[data-id]')?.dataset.id ?? route().id);
    el.textContent = e && e.state !== 'pending' ? '' : left(ms) + (el.dataset.words ?? '');
    el.classList.toggle('short', ms < 120000);
    el.classList.toggle('last', ms < 30000);
  }
  const n = pending().length;
  if ($('wcount')) $('wcount').textContent = count(n, 'change') + (n === 1 ? ' waits' : ' wait');
  for (const e of pending()) if (new Date(e.expires) <= clock.now() - 5000) over({ id: e.id, state: 'expired' }); // and no event came
  badge();
}

// badge puts into the title how many wait, and the clock once it is short.
export function badge() {
  const all = pending(), soon = Math.min(...all.map(e => new Date(e.expires) - clock.now()));
  document.title = (all.length ? soon < 60000 ? `(${all.length}, ${left(soon)}) ` : `(${all.length}) ` : '') + S.title + ' · moltis-fs';
}

// waitingKey does what a key means here, and reports whether it means something.
export function waitingKey(key, repeat) {
  const e = entryOf(route().id), steps = { j: 1, k: -1 }[key];
  if (key === 'Escape') { if (W.armed) disarm(); return !!W.armed; }
  if (steps) step(steps);
  else if (key === '[' || key === ']') stepFile(key === ']' ? 1 : -1);
  else if (key === 's' && wide.matches) toggleSide();
  else if (repeat) return false; // a key that is held answers once
  else if (key === 'A') approveAll();
  else if (e?.state !== 'pending' || isMine(e) || !$('answer')) return false;
  else if (key === 'a') { if (W.armed !== e.id) approve(e); } // armed: Enter or a click, not a again
  else if (key === 'd') denyForm(e);
  else return false;
  return true;
}

wide.addEventListener('change', () => { if (route().view === 'waiting') goto(location.hash, true, true); });

// forget takes everything off that was shown.
export function forget() { W.files.clear(); W.read.clear(); W.armed = ''; watch?.disconnect(); }
