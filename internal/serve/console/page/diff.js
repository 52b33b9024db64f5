// Diffs: a unified diff as files, lines and marks.
import { h, esc, chip, counts, count, pathNodes, pathText } from './dom.js';

// unquote reads a name of a diff's head: "a/x", quoted as git does where it holds anything odd.
function unquote(name) {
  if (!name.startsWith('"')) return name.replace(/\t$/, '').replace(/^[ab]\//, '');
  const out = name.slice(1, -1).replace(/\\(\d{3}|.)/g, (_, c) => c.length === 3 ? String.fromCharCode(parseInt(c, 8)) : c).replace(/^[ab]\//, '');
  try { return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(out, c => c.charCodeAt(0))); } catch { return { bytes: btoa(out) }; }
}

// parse gives the files of a unified diff: {path, change, added, removed, rows}. A row is {t, s, o, n, cr, eof, pair}: its sign, its
// text, the old and the new number, whether it ends in CR LF or without an end, and the row that it goes with. Within a hunk
// the counts of its head say how many lines are the file's, so that a line "--- a/x" of a file begins no other one.
export function parse(text) {
  const files = [];
  let file, o = 0, n = 0, old = 0, now = 0, from = '';
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  for (const l of lines) {
    const inside = old > 0 || now > 0;
    if (l.startsWith('\\')) { const r = file?.rows.at(-1); if (r) r.eof = true; continue; }
    if (!inside && l.startsWith('--- ')) { from = l.slice(4); continue; }
    if (!inside && l.startsWith('+++ ')) {
      const to = l.slice(4), path = unquote(to === '/dev/null' ? from : to);
      file = { path, change: from === '/dev/null' ? 'created' : to === '/dev/null' ? 'deleted' : 'changed', added: 0, removed: 0, rows: [] };
      files.push(file);
      continue;
    }
    const head = !inside && /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/.exec(l);
    if (head && file) {
      o = +head[1]; n = +head[3]; old = +(head[2] ?? 1); now = +(head[4] ?? 1);
      file.rows.push({ t: '@', s: l });
      continue;
    }
    if (!inside || !file) { // a remark of the plan
      files.push(file = { note: l, rows: [], added: 0, removed: 0 });
      file = undefined;
      continue;
    }
    const t = l[0] === '+' || l[0] === '-' ? l[0] : ' ', cr = l.endsWith('\r');
    const row = { t, s: cr ? l.slice(1, -1) : l.slice(1), cr, o: 0, n: 0 };
    if (t !== '+') { row.o = o++; old--; }
    if (t !== '-') { row.n = n++; now--; }
    file.added += t === '+'; file.removed += t === '-';
    file.rows.push(row);
  }
  for (const f of files) pairUp(f.rows);
  return files;
}

// pairUp finds which removed line goes with which added one.
function pairUp(rows) {
  for (let i = 0; i < rows.length; i++) {
    if (rows[i].t !== '-') continue;
    let j = i; while (rows[j]?.t === '-') j++;
    let k = j; while (rows[k]?.t === '+') k++;
    for (let x = 0; i + x < j && j + x < k; x++) { rows[i + x].pair = rows[j + x]; rows[j + x].pair = rows[i + x]; }
    i = Math.max(i, k - 1);
  }
}

// ends says which line ends one side of a diff has, as far as it is shown: LF, CRLF, MIXED or nothing.
function ends(rows, side) {
  const all = rows.filter(r => (r.t === ' ' || r.t === side) && !r.eof), crs = all.filter(r => r.cr).length;
  return !all.length ? '' : crs === 0 ? 'LF' : crs === all.length ? 'CRLF' : 'MIXED';
}

const ROWS = 500; // of one table
const LONG = 4000; // characters of a line that are shown at once
const word = c => /[\p{L}\p{N}_]/u.test(c ?? '');

// differs gives the ends [a, z) of the words in which s differs from p; both 0 where they have too little in common.
function differs(s, p) {
  let a = 0, z = 0;
  const most = Math.min(s.length, p.length);
  while (a < most && s[a] === p[a]) a++;
  while (z < most - a && s.at(-1 - z) === p.at(-1 - z)) z++;
  const cuts = (t, i) => word(t[i - 1]) && word(t[i]);
  while (a && (cuts(s, a) || cuts(p, a))) a--;
  while (z && (cuts(s, s.length - z) || cuts(p, p.length - z))) z--;
  return a + z < Math.max(s.length, p.length) * .3 ? [0, 0] : [a, s.length - z];
}

// lineNodes is the text of a row, with its marks. A long line is cut, with a button for the rest; cut() is told of each, and its more.
function lineNodes(r, marks, cut) {
  if (!r) return [];
  const s = r.s.slice(0, LONG), out = [];
  const [a, z] = r.pair ? differs(s, r.pair.s.slice(0, LONG)) : [0, 0];
  const blanks = r.t === '+' ? /[ \t]*$/.exec(s).index : s.length;
  const cuts = [0, a, z, blanks, s.length].sort((x, y) => x - y);
  for (let i = 1; i < cuts.length; i++) {
    const from = cuts[i - 1], part = s.slice(from, cuts[i]);
    if (!part) continue;
    if (from >= blanks) out.push(h('span', { class: 'ws', title: 'blanks at the end' }, esc(part, true)));
    else out.push(a <= from && from < z ? h('b', {}, esc(part, true)) : esc(part, true));
  }
  if (r.s.length > LONG) {
    const opened = cut();
    const b = h('button', { type: 'button', class: 'rest', onclick: () => { b.replaceWith(...esc(r.s.slice(LONG), true)); opened(); } }, `… ${count(r.s.length - LONG, 'character')} more`);
    out.push(b);
  }
  if (marks && r.cr) out.push(h('span', { class: 'end', title: 'ends with CR LF' }, 'CR'));
  if (r.eof) out.push(h('span', { class: 'end' }, 'no line end'));
  return out;
}

const SIGN = { '+': ['+', 'add'], '-': ['−', 'del'], '@': [' ', 'at'], ' ': [' ', ''] };

function diffTable(f, side, marks, cut) {
  const num = n => h('td', { class: 'no', 'data-n': n || '' });
  const cell = (r, more) => h('td', { class: 'code ' + (r ? SIGN[r.t][1] : 'none'), ...more }, h('span', { class: 'sign' }, r ? SIGN[r.t][0] : ' '),
    h('span', { class: 'txt' }, r?.t === '@' ? esc(r.s) : lineNodes(r, marks, cut)));
  const body = [];
  for (const r of f.rows) {
    if (!side) body.push(h('tr', { class: SIGN[r.t][1] }, num(r.o), num(r.n), cell(r)));
    else if (r.t === '@') body.push(h('tr', { class: 'at' }, num(), cell(r, { colspan: 3 })));
    else if (r.t === ' ') body.push(h('tr', {}, num(r.o), cell(r), num(r.n), cell(r)));
    else if (r.t === '-') body.push(h('tr', {}, num(r.o), cell(r), num(r.pair?.n), cell(r.pair)));
    else if (!r.pair) body.push(h('tr', {}, num(), cell(null), num(r.n), cell(r)));
  }
  const tables = []; // of so many rows each: a browser lays out only those that are near
  for (let i = 0; i < body.length; i += ROWS) {
    tables.push(h('table', { class: 'diff' + (side ? ' side' : ''), 'aria-label': 'Diff of ' + pathText(f.path) },
      h('colgroup', {}, (side ? ['no', '', 'no', ''] : ['no', 'no', '']).map(c => h('col', { class: c }))), h('tbody', {}, body.slice(i, i + ROWS))));
  }
  return tables.map(t => h('div', { class: body.length > ROWS ? 'part' : null }, t));
}

// fileBox shows what becomes of a file: {path, from, change, added, removed, binary, rows, why, modes, warnings}. At its end is an <i>
// whose data-i is i, for whoever watches what was read; data-cuts counts long lines that are still cut, and a "whole" event
// comes when there are none.
export function fileBox(f, i, side, level = 'h3') {
  if (f.note !== undefined) return h('p', { class: 'file bin' }, esc(f.note), h('i', { class: 'end-of-file', 'data-i': i, 'data-cuts': 0 }));
  const before = ends(f.rows, '-'), after = ends(f.rows, '+'), turned = before && after && before !== after;
  const end = h('i', { class: 'end-of-file', 'data-i': i, 'data-cuts': 0 });
  const cut = () => { end.dataset.cuts++; return () => { if (--end.dataset.cuts === 0) end.dispatchEvent(new Event('whole', { bubbles: true })); }; };
  const chips = [];
  if (f.change === 'created') chips.push(chip('new' + (f.modes?.[1] ? ', ' + f.modes[1] : ''), /[1357]/.test(f.modes?.[1] ?? '') ? 'warn' : ''));
  else if (f.change === 'deleted' || f.change === 'removed') chips.push(chip('deleted'));
  else if (f.modes && f.modes[0] && f.modes[1] && f.modes[0] !== f.modes[1]) chips.push(chip(`mode ${f.modes[0]} → ${f.modes[1]}`, 'warn'));
  if (f.from || f.change === 'moved') chips.push(chip('renamed'));
  if (f.binary) chips.push(chip('binary'));
  if (turned) chips.push(chip(`line ends ${before} → ${after}`, 'warn'));
  else if ((after || before) === 'MIXED') chips.push(chip('line ends MIXED', 'warn'));
  else if ((after || before) === 'CRLF') chips.push(chip('CRLF'));
  return h('article', { class: 'file', id: 'f' + i, 'aria-label': pathText(f.path) },
    h('header', {}, h(level, {}, f.from ? [pathNodes(f.from), h('span', { class: 'dim' }, ' → ')] : null, pathNodes(f.path)), chips, f.rows.length ? counts(f.added, f.removed) : null),
    f.warnings?.length ? h('p', { class: 'fwarn' }, f.warnings.map(w => h('span', {}, '⚠ ', esc(w)))) : null,
    f.rows.length ? diffTable(f, side, turned || after === 'MIXED' || before === 'MIXED', cut) :
      h('p', { class: 'bin' }, f.why ? esc(f.why) : f.binary ? 'Its content is no text: it is not shown.' : 'No lines to show: a name, a directory, or content that is no text.'),
    end);
}

// ofQuestion gives the files of a question: those of its diff, then its paths that have no lines there.
export function ofQuestion(q) {
  q.paths ??= [];
  const files = parse(q.diff ?? ''), seen = new Set();
  for (const f of files) {
    if (f.note !== undefined) continue;
    const text = pathText(f.path), path = q.paths.find(p => pathText(p) === '/' + text || pathText(p) === text);
    if (path !== undefined) f.path = path; else if (typeof f.path === 'string') f.path = '/' + f.path;
    seen.add(pathText(f.path));
  }
  for (const path of q.paths) if (!seen.has(pathText(path))) files.push({ path, change: q.new?.includes(path) ? 'created' : 'changed', rows: [], added: 0, removed: 0 });
  for (const f of files) f.warnings = f.path === undefined ? [] : (q.warnings ?? []).filter(w => w.startsWith(f.path + ' ')).map(w => w.slice(f.path.length + 1));
  return files;
}

// ofCheckpoint gives the files of checkpoints.diff, with the modes of checkpoints.show.
export function ofCheckpoint(diff, entry) {
  const modes = new Map((entry?.changes ?? []).map(c => [pathText(c.path), [c.before?.mode, c.after?.mode]]));
  const files = (diff.files ?? []).map(f => ({ ...f, modes: modes.get(pathText(f.path)), rows: f.diff ? parse(f.diff).flatMap(x => x.rows) : [] }));
  return [...files, ...(diff.skipped ?? []).map(s => ({ path: s.path, change: 'changed', rows: [], added: 0, removed: 0, why: s.why, modes: modes.get(pathText(s.path)) }))];
}
