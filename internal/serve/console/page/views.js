// The other views: Timeline, Sessions, Refused, Audit, Trash, Tokens, Health.
import { $, h, fill, esc, plain, dim, chip, button, empty, count, counts, bytes, pathNodes, pathText, names, below, at, span, clock, table, opener, confirm, say } from './dom.js';
import { rpc, Refusal, history24 } from './server.js';
import { fileBox, ofCheckpoint } from './diff.js';
import { S, href, route, goto, failed } from './state.js';

// filters is a form whose values stand in the address, to be kept and sent. fields are [name, label, hint] or [name, label, 'check'].
function filters(view, r, fields) {
  const form = h('form', { class: 'filters', role: 'search', 'aria-label': 'Filter', onsubmit: ev => { ev.preventDefault(); set(); }, onchange: () => set() },
    fields.map(([name, label, hint]) => hint === 'check' ?
      h('label', { class: 'check' }, h('input', { type: 'checkbox', name, id: 'q-' + name, value: '1', checked: !!r.q.get(name) }), label) :
      h('label', {}, label, h('input', { name, id: 'q-' + name, value: r.q.get(name) ?? '', autocomplete: 'off', spellcheck: 'false', placeholder: hint ?? '' }))),
    [...r.q].length ? h('a', { href: href(view) }, 'clear') : null);
  function set() {
    const at = href(view, '', Object.fromEntries(new FormData(form)));
    if (at === location.hash) return;
    S.focus = document.activeElement?.id;
    goto(at, true, true);
  }
  return form;
}

// older is a button that adds the next page: more(cursor) gives [nodes, the next cursor], and put adds them.
function older(cursor, more, put) {
  if (!cursor) return null;
  const p = h('p', { class: 'older' }, button('Older…', async () => {
    try {
      const [nodes, next] = await more(cursor);
      put(nodes);
      cursor = next;
      if (!cursor) p.remove();
    } catch (err) { failed(err); }
  }, 'quiet'));
  return p;
}

const given = (r, ...list) => Object.fromEntries(list.map(k => [k, r.q.get(k)]).filter(([, v]) => v));
const YES = { yes: true };
const partial = answer => answer.partial ? h('p', { class: 'warn-t' }, 'This is not all: the log is long, choose a later time; or the fleet can’t be reached.') : null;

// ---- Timeline: turns, their calls, their files -------------------------------------------------

export async function timeline(r) {
  const q = given(r, 'session', 'principal', 'since'), path = r.q.get('path');
  if (path) q.paths = [path.startsWith('/') || !names.root ? path : names.root + '/' + path];
  const page = cursor => rpc('checkpoints.list', { ...q, limit: 100, ...(cursor ? { cursor } : {}) });
  const first = await page(), bar = filters('timeline', r, [['session', 'Session'], ['principal', 'Principal'], ['path', 'Path', 'below it, too'], ['since', 'Since', '24h']]);
  S.newer = 0;
  if (!first.changes.length && ![...r.q].length) {
    return S.config.undo === false ? empty('Checkpoints are off: nothing can be taken back.', 'Set ', h('code', {}, 'checkpoint_before_mutation = true'), ' under [tools.fs] and reload.') :
      empty('Nothing was changed yet.', 'Each change of an agent comes here, with its diff and its undo.');
  }
  if (!first.changes.length) return [bar, empty('No change is like that.', h('a', { href: href('timeline') }, 'Clear the filters'), '.')];
  const list = h('ol', { class: 'turns' }), undone = new Map();
  const put = rows => {
    for (const c of rows) { // newest first, so that an undo is known before its change
      const of = c.undo_of ?? c.restore_of;
      if (of && !undone.has(c.id)) undone.set(of, c.id);
      c.undone_by ??= undone.get(c.id);
    }
    const turns = [];
    for (const c of rows) {
      const t = turns.at(-1);
      if (t && t[0].turn === c.turn && t[0].session === c.session && t[0].principal === c.principal) t.push(c); else turns.push([c]);
    }
    list.append(...turns.map(turn));
  };
  put(first.changes);
  return [bar, h('div', { id: 'newer' }, dim('Newest first. What comes while you read waits here.')), list,
    older(first.next_cursor, async cursor => { const p = await page(cursor); return [p.changes, p.next_cursor]; }, put)];
}

// newer says in its own line that changes came: nothing is put above what is read.
export function newer() {
  S.newer++;
  if (route().view !== 'timeline') return;
  if (!$('newer')) return goto(location.hash, true, true);
  fill($('newer'), button('Show newer changes', () => goto(location.hash, true, true), 'newer'));
}

// total counts the lines of calls; a file without counts is no text, or was not kept.
function total(cs) {
  const files = cs.flatMap(c => c.files).filter(f => f.added !== undefined), sum = k => files.reduce((n, f) => n + f[k], 0);
  return files.length ? counts(sum('added'), sum('removed')) : h('span', { class: 'counts' });
}

function turn(cs) {
  const c = cs[0], files = cs.reduce((n, x) => n + x.files.length, 0), many = cs.length > 1;
  return h('li', { class: 'turn' }, h('div', { class: 'thead' }, at(cs.at(-1).time), h('b', {}, esc(c.principal)), c.label ? h('span', { class: 'label' }, '“', esc(c.label), '”') : null,
    dim(esc([c.turn && 'turn ' + c.turn, c.session, c.client].filter(Boolean).join(' · '))),
    many ? h('span', { class: 'tsum' }, dim(count(files, 'file')), total(cs), h('span', { class: 'ck' }),
      c.turn ? button('Undo since…', () => takeBack('checkpoints.rewind', { turn: c.turn, session: c.session, principal: c.principal },
        `Undo all that ${c.principal} · ${c.session} changed since turn ${c.turn} began?`), '', `Undo since turn ${plain(c.turn)} of ${plain(c.principal)} began…`) : h('span', { class: 'nobutton' })) : null),
  h('ul', { class: 'calls' }, cs.map(call)));
}

// diffs gives all diffs of a change. An answer leaves the later ones of a large change out; they are asked for by their paths.
async function diffs(id) {
  const all = await rpc('checkpoints.diff', { id, after: true }), missing = () => all.files.filter(f => !f.diff && !f.binary && f.added + f.removed > 0).map(f => f.path);
  for (let before = Infinity; all.truncated && missing().length && missing().length < before;) {
    before = missing().length;
    const more = await rpc('checkpoints.diff', { id, after: true, paths: missing() }), got = new Map(more.files.map(f => [pathText(f.path), f]));
    all.files = all.files.map(f => f.diff ? f : got.get(pathText(f.path)) ?? f);
  }
  all.truncated = all.truncated && missing().length > 0;
  return all;
}

function call(c) {
  const one = c.files.length === 1 ? c.files[0] : null, name = `${plain(c.tool)} ${one ? below(pathText(one.path)) : count(c.files.length, 'file')}`;
  const moved = one?.to ? [dim(' → '), pathNodes(one.to)] : null, undoOf = c.undo_of ?? c.restore_of;
  const [b, box] = opener([h('span', { class: 'tool' }, esc(c.tool)), ' ', one ? h('span', {}, pathNodes(one.path), moved) : h('span', { class: 'path' }, count(c.files.length, 'file'))], async () => {
    const [diff, entry] = await Promise.all([diffs(c.id), rpc('checkpoints.show', { id: c.id }).catch(() => null)]);
    const files = ofCheckpoint(diff, entry);
    return files.length ? h('div', { class: 'files' }, files.map((f, i) => fileBox(f, c.id + '-' + i, false, 'h2')),
      diff.truncated ? h('p', { class: 'warn-t' }, 'There is more of it: moltis-fs diff ', c.id, ' --after shows all.') : null) : h('p', { class: 'dim' }, 'Its contents were not kept, so there is no diff.');
  });
  const again = c.undone_by, of = { id: again ?? c.id, mode: 'inverse', session: c.session, principal: c.principal };
  const li = h('li', { id: c.id, class: again ? 'undone' : null }, h('div', { class: 'crow' }, at(c.time), b,
    h('span', { class: 'tags' }, again ? chip('undone') : null, undoOf ? chip('undo of ' + undoOf) : null),
    total([c]), h('code', { class: 'dim ck' }, c.id),
    button(again ? 'Redo…' : 'Undo…', async () => {
      const done = await takeBack('checkpoints.restore', of, `${again ? 'Redo' : 'Undo'} ${name}?`);
      if (!done) return;
      const now = call({ ...c, undone_by: again ? undefined : done.undo_id });
      li.replaceWith(now);
      now.querySelector('.crow > button:last-child').focus();
    }, '', `${again ? 'Redo' : 'Undo'} ${name}…`)), box);
  return li;
}

const HOWS = [['refuse', 'Do nothing until that is settled'], ['skip', 'Leave those alone, take the others back'],
  ['merge', 'Merge; where that can’t be done, do nothing'], ['force', 'Overwrite what they did']];
const BECOMES = { restored: 'back to what it was', merged: 'merged', removed: 'removed', created: 'comes back', unchanged: 'stays as it is' };

// takeBack asks a method of restoring, by a dry run first, and with what is in the way; it gives its answer, or null.
async function takeBack(method, params, title) {
  const dry = how => rpc(method, { ...params, ...YES, dry_run: true, ...(how ? { on_conflict: how } : {}) });
  let plan, conflicts = [];
  try {
    try { plan = await dry(); } catch (err) {
      if (!(err instanceof Refusal) || !err.data.conflicts) throw err;
      conflicts = err.data.conflicts;
      plan = await dry('skip').catch(() => ({ files: [], skipped: [] }));
    }
    const rows = (plan.files ?? []).map(f => [pathNodes(f.path), BECOMES[f.action] ?? esc(f.action ?? ''), f.added === undefined ? '' : counts(f.added, f.removed)]);
    const hits = conflicts.map(c => [pathNodes(c.path), h('span', { class: 'warn-t' }, esc(c.why ?? 'changed since')), '']);
    const rest = (plan.skipped ?? []).filter(s => !conflicts.some(c => pathText(c.path) === pathText(s.path))).map(s => [pathNodes(s.path), dim(esc(s.why ?? 'is left alone')), '']);
    const n = rows.length, files = conflicts.length === 1 ? '1 file was changed' : `${conflicts.length} files were changed`;
    const form = await confirm(title, [
      h('p', {}, n || conflicts.length ? 'This is a change itself: it has its own undo.' : 'Nothing is left to take back.'),
      conflicts.length ? h('fieldset', {}, h('legend', { class: 'warn-t' }, `⚠ ${files} since, by others.`),
        HOWS.map(([v, t]) => h('label', { class: 'radio' }, h('input', { type: 'radio', name: 'how', value: v, checked: v === 'refuse' }), t))) : null,
      n || hits.length || rest.length ? h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'What will happen' },
        table('What will happen', [['Path', 'grow'], ['Becomes'], ['Lines', 'num']], [...hits, ...rows, ...rest])) : null],
    conflicts.length ? 'Take back' : `Take back ${count(n, 'file')}`, { cls: 'danger', check: d => conflicts.length ? d.get('how') !== 'refuse' : n > 0 });
    if (!form) { say('Nothing was changed.'); return null; }
    const how = form.get('how'), done = await rpc(method, { ...params, ...YES, ...(how ? { on_conflict: how } : {}) });
    const left = done.skipped?.length ?? 0;
    say(`Taken back: ${count(done.files?.length ?? 0, 'file')}${left ? `, ${left} left alone` : ''}.`);
    return done;
  } catch (err) { failed(err); return null; }
}

// ---- Sessions --------------------------------------------------------------------------------

export async function sessions(r) {
  const page = cursor => rpc('sessions.list', { since: r.q.get('since') || '7d', limit: 100, ...(cursor ? { cursor } : {}) }), first = await page();
  const bar = filters('sessions', r, [['since', 'Since', '7d']]);
  if (!first.sessions.length) return [bar, empty('No session yet.', 'Connect a client: ', h('code', {}, 'moltis-fs init'), ' sets one up, and ', h('a', { href: href('tokens') }, 'a token'), ' lets others in over HTTP.')];
  const waits = s => S.approvals.filter(e => e.state === 'pending' && e.session === s.session && e.principal === s.principal).length;
  const row = s => [[esc(s.principal), dim(' · ', esc(s.session))], esc(s.client), at(s.first), at(s.last), s.calls,
    s.changes ? h('a', { href: href('timeline', '', { session: s.session, principal: s.principal }), 'aria-label': `${count(s.changes, 'change')}, in the timeline` }, s.changes) : 0,
    s.refused ? h('a', { href: href('audit', '', { session: s.session, principal: s.principal }), 'aria-label': `${s.refused} refused, in the audit log` }, s.refused) : 0,
    waits(s) ? h('a', { href: href('waiting') }, waits(s)) : 0,
    s.changes ? button('Undo all…', () => takeBack('checkpoints.undo', { all: true, session: s.session, principal: s.principal }, `Undo all that ${s.principal} · ${s.session} changed?`), '',
      `Undo all that ${plain(s.principal)}, session ${plain(s.session)}, changed…`) : dim('nothing to undo')];
  const make = rows => table('Sessions', [['Session', 'grow'], ['Client'], ['Since', 'num'], ['Last', 'num'], ['Calls', 'num'], ['Changes', 'num'], ['Refused', 'num'], ['Waiting', 'num'], ['', 'acts']], rows.map(row));
  const t = make(first.sessions);
  return [bar, partial(first), t, older(first.next_cursor, async c => { const p = await page(c); return [p.sessions, p.next_cursor]; }, rows => t.tBodies[0].append(...make(rows).tBodies[0].rows))];
}

// ---- Refused and Audit -----------------------------------------------------------------------

const OUTCOMES = { ok: 'ok', path_denied: 'refused', approval_denied: 'not approved' };

function auditTable(records) {
  const row = r => {
    const paths = r.paths ?? [], words = r.outcome === 'ok' ? r.checkpoint ? 'changed' : 'ok' : r.phase === 'intent' ? 'no outcome' : OUTCOMES[r.outcome] ?? r.outcome;
    return [at(r.time), [esc(r.principal ?? r.user ?? ''), r.session ? dim(' · ', esc(r.session)) : null], esc(r.tool),
      paths.length ? [pathNodes(paths[0]), paths.length > 1 || r.more_paths ? dim(` and ${paths.length - 1 + (r.more_paths ?? 0)} more`) : null] : '',
      h('span', { class: r.outcome === 'ok' ? null : 'warn-t' }, esc(words)),
      [r.rule ? [esc(r.rule), ' ', r.rule_text ? h('code', {}, esc(r.rule_text)) : null, r.rule_at ? dim(' ', esc(r.rule_at)) : null, ' '] : null,
        r.approval ? [esc(r.approval), ' '] : null, r.checkpoint ? h('code', { class: 'dim' }, r.checkpoint) : null]];
  };
  return table('Records', [['Time', 'num'], ['Who'], ['Tool'], ['Path', 'grow'], ['Outcome'], ['Why', 'grow']], records.map(row));
}

export async function refused(r) {
  const since = r.q.get('since') || '24h', answer = await rpc('audit.refused', { since }), { refused: rows } = answer;
  const bar = filters('refused', r, [['since', 'Since', '24h']]);
  if (!rows.length) return [bar, empty('Nothing was refused since then.', 'What a rule, a scope or an operator refuses is counted here, by the rule that did it.')];
  return [bar, partial(answer), h('ul', { class: 'groups' }, rows.map(g => {
    const [b, box] = opener([h('b', {}, esc(g.rule || g.outcome)), ' ', g.rule_text ? h('code', {}, esc(g.rule_text)) : null, g.rule && g.outcome !== 'path_denied' ? dim(' ', esc(g.outcome)) : null],
      async () => auditTable((await rpc('audit.query', { since, outcome: g.outcome, ...(g.rule_text || g.rule ? { rule: g.rule_text || g.rule } : {}), limit: 20 })).records));
    return h('li', {}, h('div', { class: 'grp' }, b, h('span', { class: 'dim where' }, esc(g.rule_at ?? '')), h('span', { class: 'num' }, count(g.count, 'call')), h('span', { class: 'num dim' }, 'last ', at(g.last))), box);
  }))];
}

export async function audit(r) {
  const q = given(r, 'principal', 'session', 'tool', 'outcome', 'path', 'since', 'until', 'rule');
  if (r.q.get('changes')) q.changes = true;
  const page = cursor => rpc('audit.query', { ...q, limit: 100, ...(cursor ? { cursor } : {}) }), first = await page();
  const chain = h('p', { class: 'lead' }, 'Each record holds the hash of the one before. ', button('Check the log', async () => {
    fill(chain, 'Checking…');
    try {
      const v = await rpc('audit.verify'), flaws = [...(v.flaws ?? []), ...(v.changes?.flaws ?? [])], n = v.records + (v.changes?.records ?? 0);
      chain.className = v.ok ? 'lead' : 'lead bad';
      fill(chain, flaws.length ? `THE LOG IS NOT WHOLE: ${count(flaws.length, 'flaw')}. moltis-fs audit verify names them. Checked at ` :
        `The log is whole: ${count(n, 'record')}${v.ok ? '' : ', but not compared with all that the fleet has on record; moltis-fs audit verify says why'}. Checked at `, at(new Date(clock.now()).toISOString()), '.');
    } catch (err) { fill(chain, 'The log can’t be checked: ', esc(err.message)); }
  }, 'quiet'));
  const t = auditTable(first.records);
  return [chain, filters('audit', r, [['principal', 'Principal'], ['session', 'Session'], ['tool', 'Tool'], ['outcome', 'Outcome', 'path_denied'], ['path', 'Path holds'], ['since', 'Since', '24h'], ['changes', 'Changes only', 'check']]),
    first.records.length ? t : empty('No record is like that.', 'Outcomes are ok, path_denied, approval_denied, conflict and others. ', h('a', { href: href('audit') }, 'Clear the filters'), '.'),
    older(first.next_cursor, async c => { const p = await page(c); return [p.records, p.next_cursor]; }, rows => t.tBodies[0].append(...auditTable(rows).tBodies[0].rows))];
}

// ---- Trash -----------------------------------------------------------------------------------

export async function trash() {
  const page = cursor => rpc('trash.list', { limit: 100, ...(cursor ? { cursor } : {}) }), first = await page();
  if (!first.entries.length) return empty('The trash is empty.', 'What an agent deletes is kept here for a while, and can be put back.');
  const row = e => [[pathNodes(e.path), e.kind === 'dir' ? dim('/') : null], bytes(e.size), e.files ?? '', esc([e.principal, e.session].filter(Boolean).join(' · ')), at(e.deleted, 'unknown'),
    e.expires ? span(new Date(e.expires) - clock.now()) : '',
    button('Put back…', async () => {
      try {
        if (!await confirm('Put it back?', [h('p', {}, pathNodes(e.path, false)), h('p', {}, `${count(e.files ?? 1, 'file')}, ${bytes(e.size)}. It goes back to its place if nothing is there now.`)], 'Put it back')) return;
        await rpc('trash.restore', { id: e.id, principal: e.principal, session: e.session, ...YES });
        say(`${pathText(e.path)} is back.`);
        goto(location.hash, true, true);
      } catch (err) { failed(err); }
    }, '', 'Put back ' + pathText(e.path) + '…')];
  const make = rows => table('Trash', [['Path', 'grow'], ['Size', 'num'], ['Files', 'num'], ['Deleted by'], ['Deleted', 'num'], ['Kept for', 'num'], ['', 'acts']], rows.map(row));
  const t = make(first.entries);
  return [t, older(first.next_cursor, async c => { const p = await page(c); return [p.entries, p.next_cursor]; }, rows => t.tBodies[0].append(...make(rows).tBodies[0].rows))];
}

// ---- Tokens ----------------------------------------------------------------------------------

export async function tokens() {
  const { tokens: list } = await rpc('tokens.list'), make = button('New token…', newToken, 'strong');
  if (!list.length) return [empty('No tokens.', 'Without one, only this machine’s own user gets in. A token lets an agent or a person call over HTTP.'), h('p', {}, make)];
  const scope = (t, list) => t.operator ? dim('no calls') : t.scope ? esc(list.join(', ') || 'nothing') : 'all that rules allow';
  const ends = t => t.expired ? h('span', { class: 'warn-t' }, 'has ended') : !t.expires ? h('span', { class: 'warn-t' }, 'never') :
    h('span', { class: new Date(t.expires) - clock.now() < 2 * 864e5 ? 'warn-t' : null }, 'in ' + span(new Date(t.expires) - clock.now()));
  const used = list.some(t => t.last_used) ? [['Last used', 'num']] : [];
  return [table('Tokens', [['Who'], ['Is'], ['Reads', 'grow'], ['Writes', 'grow'], ['Created', 'num'], ['Ends', 'num'], ...used, ['', 'acts']], list.map(t => [
    [h('b', {}, esc(t.principal)), ' ', h('code', { class: 'dim' }, t.id)], t.operator ? 'operator' : t.by_user ? 'person' : 'agent',
    scope(t, t.scope ? [...new Set([...(t.scope.readable ?? []), ...(t.scope.writable ?? [])])] : []), scope(t, t.scope?.writable ?? []), at(t.created), ends(t), ...used.map(() => at(t.last_used)),
    button('Revoke…', async () => {
      try {
        if (!await confirm(`Revoke the token of ${t.principal}?`, h('p', {}, 'Its calls are refused from now on. This can’t be taken back; make a new one instead.'), 'Revoke', { cls: 'danger' })) return;
        await rpc('tokens.revoke', { id: t.id });
        say(`The token ${t.id} is revoked.`);
        goto(location.hash, true, true);
      } catch (err) { failed(err); }
    }, '', `Revoke ${t.id} of ${plain(t.principal)}…`)])), h('p', { class: 'under' }, make)];
}

async function newToken() {
  const field = (name, label, note, value) => h('label', { class: 'field' }, h('span', {}, label), h('input', { name, id: 'new-' + name, value, autocomplete: 'off', spellcheck: 'false' }), note ? h('small', {}, note) : null);
  const lines = text => text.split('\n').map(x => x.trim()).filter(Boolean);
  const area = (name, label, note) => h('label', { class: 'field' }, h('span', {}, label), h('textarea', { name, rows: 2, spellcheck: 'false' }), h('small', {}, note));
  const form = await confirm('New token', [field('principal', 'Who', 'the principal, as it stands in the audit log'), h('label', { class: 'field' }, h('span', {}, 'Is'), h('select', { name: 'kind' }, ['agent', 'person'].map(x => h('option', {}, x)))),
    area('read', 'Reads', 'directories, one a line; without any, all that the rules allow'), area('write', 'Writes', 'the same; what is written may be read'), field('expires', 'Ends after', 'as 12h or 90d', '90d'),
    h('p', { class: 'dim' }, 'An operator’s token is made at the command line: moltis-fs token create --operator.')], 'Make it', { check: d => d.get('principal').trim() !== '', focus: 'new-principal' });
  if (!form) return;
  try {
    const t = await rpc('tokens.create', { principal: form.get('principal').trim(), expires: form.get('expires'), ...(form.get('kind') === 'person' ? { user: true } : {}),
      ...(lines(form.get('read')).length ? { read: lines(form.get('read')) } : {}), ...(lines(form.get('write')).length ? { write: lines(form.get('write')) } : {}) });
    const secret = h('input', { readonly: true, value: t.secret, id: 'secret', 'aria-label': 'The secret' });
    await confirm(`The token ${t.id} of ${t.principal}`, [h('p', {}, 'This is its secret. It is shown this once, and is kept nowhere.'), secret], 'I have it', { focus: 'secret' });
    secret.value = '';
    fill($('confirm-b'));
    goto(location.hash, true, true);
  } catch (err) { failed(err); }
}

// ---- Health ----------------------------------------------------------------------------------

// plot draws one line over time. points are [ms, value]; the figures are said in words beside it.
function plot(title, points, unit, limit) {
  const values = points.map(p => p[1]), now = values.at(-1) ?? 0, most = Math.max(...values, 0), top = Math.max(1, most * 1.08);
  const [from, to] = [points[0]?.[0] ?? 0, points.at(-1)?.[0] ?? 1], W = 300, H = 56;
  const d = points.map(([t, v], i) => `${i ? 'L' : 'M'}${((t - from) / Math.max(1, to - from) * W).toFixed(1)} ${(H - 1 - v / top * (H - 4)).toFixed(1)}`).join('');
  return h('figure', { class: 'plot' }, h('figcaption', {}, dim(title), h('b', {}, unit(now)), limit ? dim(`of ${unit(limit)}, ${Math.round(100 * now / limit)} %`) : null),
    h('svg', { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${title}: now ${unit(now)}, at most ${unit(most)}` },
      h('line', { x1: 0, x2: W, y1: H - 1, y2: H - 1, class: 'axis' }), points.length > 1 ? [h('path', { d: `${d}L${W} ${H - 1}L0 ${H - 1}Z`, class: 'area' }), h('path', { d, class: 'line' })] : null),
    h('div', { class: 'ends dim', 'aria-hidden': 'true' }, h('span', {}, points.length > 1 ? span(clock.now() - from) + ' ago' : 'since this start'), h('span', {}, 'most ' + unit(most)), h('span', {}, 'now')));
}

export async function health() {
  const [store, config, doctor, past] = await Promise.all([rpc('store.stats'), rpc('config.show'), rpc('doctor.list').catch(err => ({ error: err.message })), history24()]);
  const line = key => past.map(p => [new Date(p.time).getTime(), p[key]]), level = { ok: '', weaker: 'warn', hazard: 'danger' }, order = ['hazard', 'weaker', 'ok'];
  const show = v => Array.isArray(v) ? v.join(', ') || 'none' : v === null || v === undefined || v === '' ? 'none' : typeof v === 'object' ? JSON.stringify(v) : String(v);
  return [h('div', { class: 'plots' }, plot('Store', line('store'), bytes, store.max_bytes), plot('Audit log', line('audit'), bytes, config.audit_max_bytes), plot('Trash', line('trash'), bytes), plot('Questions waiting', line('waiting'), String)),
    h('h2', {}, 'Doctor'), doctor.error ? h('p', { class: 'warn-t' }, esc(doctor.error)) : doctor.findings.length ?
      table('Doctor', [['Level'], ['About'], ['What', 'grow'], ['Next move', 'grow']], doctor.findings.toSorted((a, b) => order.indexOf(a.level) - order.indexOf(b.level)).map(f =>
        [chip(f.level, level[f.level]), esc(f.about), [esc(f.what), f.path ? [' ', pathNodes(f.path, false)] : null], esc(f.hint ?? '')])) : h('p', {}, 'It finds nothing to mend.'),
    h('h2', {}, 'Store'), table('Store', [['What'], ['Value', 'grow']], Object.entries(store).map(([k, v]) => [k, h('code', {}, esc(k.endsWith('_bytes') ? bytes(v) : show(v)))])),
    h('h2', {}, 'Configuration'), table('Configuration', [['Key'], ['Value', 'grow']], Object.entries(config).filter(([k]) => k !== 'store').map(([k, v]) => [k, h('code', {}, esc(k.endsWith('_bytes') ? bytes(v) : show(v)))]))];
}
