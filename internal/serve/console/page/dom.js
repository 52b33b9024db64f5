// Elements, names, times and dialogs. Text that others wrote becomes text nodes, never HTML.

export const $ = id => document.getElementById(id);

// saved keeps a choice of this browser: theme, side by side, single keys.
export const saved = {
  get(key, or) { try { return localStorage.getItem('moltis.' + key) ?? or; } catch { return or; } },
  set(key, value) { try { localStorage.setItem('moltis.' + key, value); } catch { /* a window without storage */ } },
};
const SVG = new Set(['svg', 'path', 'line', 'title']);
const shown = kids => kids.flat(9).filter(x => x !== null && x !== undefined && x !== false);

// h makes an element: h('p', {class: 'x', onclick: f}, 'text', node, [more]). Attributes that are null or false are left out.
export function h(tag, attributes, ...kids) {
  const el = SVG.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? '' : value);
  }
  el.append(...shown(kids));
  return el;
}

export const fill = (el, ...kids) => el?.replaceChildren(...shown(kids));
export const vh = text => h('span', { class: 'vh' }, text);
export const dim = (...kids) => h('span', { class: 'dim' }, ...kids);
export const chip = (text, kind = '') => h('span', { class: 'chip ' + kind }, text);
export const kbd = key => h('kbd', { 'aria-hidden': 'true' }, key);
export const button = (text, onclick, cls, label) => h('button', { type: 'button', class: cls, onclick, 'aria-label': label }, text);
export const empty = (what, ...todo) => h('div', { class: 'empty' }, h('p', {}, h('b', {}, what)), h('p', {}, ...todo));
export const count = (n, one, many = one + 's') => `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
export const counts = (added, removed) => h('span', { class: 'counts' },
  h('span', { class: 'plus' }, '+' + (added ?? 0)), ' ', h('span', { class: 'minus' }, '−' + (removed ?? 0)));

export function bytes(n) {
  for (const [unit, size] of [['GB', 2 ** 30], ['MB', 2 ** 20], ['KB', 1024]]) if (n >= size) return +(n / size).toFixed(n < 10 * size ? 1 : 0) + ' ' + unit;
  return (n ?? 0) + ' B';
}
// say puts a line at the bottom; alarm is for screen readers alone.
export const say = text => { $('say').textContent = text; };
export const alarm = text => { $('alarm').textContent = text; };

// ---- text that may not be seen ---------------------------------------------------------------

// HIDDEN is a character that shows nothing or changes how others are shown, as the command line has it.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}\p{Cn}\p{Variation_Selector}\p{Default_Ignorable_Code_Point}\ufffd]|(?! )\p{Zs}/u;
// ODD is one of those, or a Cyrillic or Greek letter beside a Latin one.
const ODD = new RegExp(HIDDEN.source +
  '|(?<=[a-z])[\\p{Script=Cyrillic}\\p{Script=Greek}]|[\\p{Script=Cyrillic}\\p{Script=Greek}](?=[a-z])', 'giu');

// esc gives text as nodes: given "a\u202eb" it gives "a", a box with \u{202e}, "b". With tabs, those stay.
export function esc(value, tabs) {
  const text = String(value ?? ''), out = [];
  if (/^[ -~]*$/.test(text)) return [text];
  let at = 0;
  for (const m of text.matchAll(ODD)) {
    if (tabs && m[0] === '\t') continue;
    const code = m[0].codePointAt(0).toString(16), hidden = HIDDEN.test(m[0]);
    out.push(text.slice(at, m.index), h('span', { class: hidden ? 'esc' : 'look', title: 'U+' + code.toUpperCase().padStart(4, '0') },
      hidden ? `\\u{${code}}` : m[0]));
    at = m.index + m[0].length;
  }
  return [...out, text.slice(at)];
}
// plain is esc as a string, for titles and labels.
export const plain = value => esc(value).map(x => x.textContent ?? x).join('');

// A path is a string, or {bytes: base64} where it is not UTF-8. pathText gives it as a string, for comparing and for labels.
export const pathText = p => typeof p === 'string' ? plain(p) :
  [...atob(p?.bytes ?? '')].map(c => c > '\x7f' ? `\\x{${c.charCodeAt(0).toString(16)}}` : plain(c)).join('');
export const names = { root: '' }; // the root, which short paths leave out

// below leaves the root out of the paths in a text.
export const below = text => names.root ? String(text ?? '').replaceAll(names.root.replace(/\/$/, '') + '/', '') : text;

// pathNodes shows a path, below the root without it. Each part is on its own, so that no letter turns the parts around.
export function pathNodes(p, short = true) {
  const raw = typeof p === 'string', text = raw ? p : atob(p?.bytes ?? ''), root = names.root.replace(/\/$/, '') + '/';
  const seen = short && names.root && text.startsWith(root) && text !== root ? text.slice(root.length) : text;
  const part = s => raw ? esc(s) : [...s].map(c => c > '\x7f' ? h('span', { class: 'esc', title: 'not UTF-8' }, `\\x{${c.charCodeAt(0).toString(16)}}`) : esc(c));
  const cut = seen.lastIndexOf('/') + 1;
  return h('span', { class: 'path', title: short ? pathText(p) : null },
    cut ? h('span', { class: 'dir' }, seen.slice(0, cut - 1).split('/').map(d => [h('bdi', {}, part(d)), '/'])) : null,
    h('bdi', { class: 'base' }, part(seen.slice(cut))));
}

// ---- time ------------------------------------------------------------------------------------

export const clock = { ahead: 0, now: () => Date.now() + clock.ahead }; // the server's time
const two = n => String(n).padStart(2, '0');

// at shows a moment: the time today, with the day before.
export function at(iso, or = 'never') {
  if (!iso) return dim(or);
  const d = new Date(iso), today = new Date(clock.now()), sameDay = d.toDateString() === today.toDateString();
  const day = d.toLocaleDateString('en', { day: 'numeric', month: 'short', year: d.getFullYear() === today.getFullYear() ? undefined : 'numeric' });
  return h('time', { datetime: iso, title: iso }, sameDay ? `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}` : `${day} ${two(d.getHours())}:${two(d.getMinutes())}`);
}

export function span(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 90) return s + ' s';
  if (s < 5400) return Math.round(s / 60) + ' min';
  return s < 172800 ? Math.round(s / 3600) + ' h' : Math.round(s / 86400) + ' d';
}
export const left = ms => { const s = Math.max(0, Math.ceil(ms / 1000)); return `${Math.floor(s / 60)}:${two(s % 60)}`; };

// ---- larger parts ----------------------------------------------------------------------------

// table makes a list: columns are [heading, class]; each cell has its heading beside it at 400 px.
export function table(label, columns, rows) {
  return h('table', { class: 'list', role: 'table', 'aria-label': label },
    h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, columns.map(([text, cls]) =>
      h('th', { role: 'columnheader', scope: 'col', class: cls }, text || vh('Actions'))))),
    h('tbody', { role: 'rowgroup' }, rows.map(cells => h('tr', { role: 'row' }, cells.map((cell, i) =>
      h('td', { role: 'cell', class: columns[i][1], 'data-l': columns[i][0] }, h('div', {}, cell)))))));
}
let opened = 0;

// opener is a button that opens what make gives below its row; it is made once.
export function opener(text, make) {
  const box = h('div', { class: 'inplace', hidden: true, id: 'o' + ++opened });
  const b = h('button', { type: 'button', class: 'open', 'aria-expanded': 'false', 'aria-controls': box.id, onclick: async () => {
    const open = box.hidden;
    if (open && !box.firstChild) {
      try { box.append(...shown([await make()])); } catch (err) { say(err.message); return; }
    }
    box.hidden = !open;
    b.setAttribute('aria-expanded', String(open));
  } }, text);
  return [b, box];
}

// confirm asks in a dialog, where Cancel has the focus. It gives the form's data, or null. check says whether the button is on.
export function confirm(title, body, yes, { cls = 'strong', check, focus } = {}) {
  const d = $('confirm'), form = $('confirm-f'), on = $('confirm-yes');
  fill($('confirm-h'), esc(title));
  fill($('confirm-b'), body);
  fill(on, yes);
  on.className = cls;
  const again = () => { on.disabled = check ? !check(new FormData(form)) : false; };
  form.onchange = form.oninput = again;
  again();
  d.returnValue = '';
  d.showModal();
  ($(focus) ?? $('confirm-no')).focus();
  return new Promise(done => { d.onclose = () => done(d.returnValue === 'yes' ? new FormData(form) : null); });
}
