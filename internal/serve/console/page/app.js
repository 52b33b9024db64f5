// The frame: sign-in, navigation, keys, and what comes by itself.
import { $, h, fill, esc, plain, at, bytes, button, empty, say, alarm, saved, names, pathNodes, clock } from './dom.js';
import { rpc, who, signIn, signOut, listen, SignedOut } from './server.js';
import { S, ui, VIEWS, route, href, goto } from './state.js';
import * as W from './waiting.js';
import * as V from './views.js';

const PAGES = { waiting: W.waiting, timeline: V.timeline, sessions: V.sessions, refused: V.refused, audit: V.audit, trash: V.trash, tokens: V.tokens, health: V.health };

let shown = '', drawing = 0, stop;

// render shows what the address says. A view that can, is brought up to date in its place.
ui.render = async anew => {
  const r = route(), page = PAGES[r.view], mine = ++drawing;
  S.title = VIEWS[r.view];
  ui.frame();
  if (!anew && shown === r.view && page.update?.(r)) return;
  const moved = shown !== r.view;
  shown = r.view;
  let nodes;
  try { nodes = await page(r); } catch (err) {
    if (err instanceof SignedOut) return ui.failed(err);
    nodes = empty('This can’t be shown.', plain(err.message), ' ', button('Try again', () => ui.render(true)), ' ', [...r.q].length ? h('a', { href: href(r.view) }, 'Clear the filters') : null);
  }
  if (mine !== drawing) return;
  fill($('main'), h('h1', { class: page.quiet ? 'vh' : null, tabindex: '-1' }, VIEWS[r.view]), nodes);
  page.ready?.(r);
  if (S.focus) { $(S.focus)?.focus(); S.focus = ''; } else if (moved && drawing > 1) { scrollTo(0, 0); document.querySelector('#main h1')?.focus({ preventScroll: true }); }
};

ui.frame = () => {
  const { view } = route(), n = { waiting: W.pending().length };
  if (!$('nav').children.length) {
    fill($('nav'), Object.entries(VIEWS).map(([v, text]) => h('li', {}, h('a', { href: href(v), id: 'nav-' + v }, text, v === 'waiting' ? [' ', h('span', { class: 'n' })] : null))));
  }
  for (const v of Object.keys(VIEWS)) {
    const a = $('nav-' + v);
    if (v === view) a.setAttribute('aria-current', 'page'); else a.removeAttribute('aria-current');
    if (v in n) a.querySelector('.n').textContent = n[v] || '';
  }
  const c = S.config, fact = (name, value, bad) => value === null ? null : h('div', { class: `f-${name} ${bad ? 'bad' : ''}` }, h('dt', {}, name), h('dd', {}, value));
  fill($('facts'), fact('project', c.root ? pathNodes(c.root, false) : c.open ? esc(c.open) : null),
    fact('policy', c.policy ? [h('code', {}, c.policy.slice(0, 8)), c.loaded ? [' · ', at(c.loaded)] : null] : null), fact('reload', c.reload_error ? esc(c.reload_error) : null, true),
    fact('rules', c.allow_paths ? `${c.allow_paths.length} allow, ${c.deny_paths.length} deny` : null), fact('undo', c.undo === undefined ? null : c.undo ? 'on' : 'OFF', !c.undo),
    fact('store', c.store ? `${bytes(c.store.used_bytes)} of ${bytes(c.store.max_bytes)}` : null, c.store && c.store.used_bytes > .9 * c.store.max_bytes),
    fact('fleet', !c.fleet ? null : c.fleet.why ? 'not reached' : c.fleet.behind ? `${c.fleet.behind} behind` : esc(c.fleet.gateway), c.fleet?.why));
  W.badge();
};

ui.failed = err => { if (err instanceof SignedOut) begin(err.message); else say(plain(err.message)); };

// begin shows the sign-in, and nothing else: whatever was shown is taken off the page.
function begin(why) {
  stop?.();
  stop = undefined;
  drawing++;
  shown = '';
  Object.assign(S, { me: null, config: {}, approvals: [] });
  names.root = '';
  W.forget();
  for (const d of document.querySelectorAll('dialog[open]')) d.close();
  fill($('confirm-b'));
  say('');
  $('top').hidden = true;
  document.title = 'Sign in · moltis-fs';
  const input = h('input', { id: 'token', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true });
  fill($('main'), h('form', { class: 'signin', onsubmit: async ev => {
    ev.preventDefault();
    const token = input.value;
    input.value = '';
    try { await signIn({ token: token.trim() }); await start(); } catch (err) { fill($('refused'), esc(err.message)); input.focus(); }
  } }, h('h1', {}, 'moltis-fs'), h('p', { id: 'refused', class: 'warn-t', role: 'alert' }, esc(why ?? '')),
  h('p', {}, 'Run ', h('code', {}, 'moltis-fs console'), ' on the machine of the files: it prints an address that signs you in. Or give an operator’s token, which ',
    h('code', {}, 'moltis-fs token create --operator --principal NAME'), ' makes.'),
  h('label', { for: 'token' }, 'Token'), h('p', {}, input, ' ', h('button', { class: 'strong' }, 'Sign in'))));
  input.focus();
}

function configure(c) {
  S.config = c;
  names.root = c.root ?? '';
}

// start shows the page to the operator who is signed in.
async function start() {
  S.me = await who();
  if (!S.me) return begin();
  const outage = err => { if (err instanceof SignedOut) throw err; ui.failed(err); return {}; }; // it ends by itself
  configure(await rpc('config.show').catch(outage));
  await W.refresh().catch(outage);
  $('top').hidden = false;
  await ui.render(true);
  stop?.();
  stop = listen(heard, live, () => begin('You are signed out.'));
}

function heard(name, data) {
  switch (name) {
  case 'begin': W.refresh().then(() => W.tick(), ui.failed); break;
  case 'approval.asked': W.asked(data.approval); break;
  case 'approval.over': W.over(data.approval); break;
  case 'checkpoint': V.newer(); break;
  case 'config': configure(data); ui.frame(); break;
  case 'beat': {
    if (W.away()) W.refresh().catch(ui.failed);
    const now = Date.parse(data.time);
    if (Math.abs(now - clock.now()) > 1500) clock.ahead = now - Date.now();
  }
  }
}

function live(on) {
  const el = $('live'), was = el.dataset.state;
  el.dataset.state = on ? 'on' : 'off';
  el.textContent = on ? 'live' : 'not live';
  if (was === 'on' && !on) alarm('The connection is lost. What you see may be old.');
  if (was === 'off' && on) alarm('');
}

// ---- keys --------------------------------------------------------------------------------------

const GO = { w: 'waiting', t: 'timeline', s: 'sessions', r: 'refused', a: 'audit', x: 'trash', k: 'tokens', h: 'health' };
const KEYS = { Anywhere: [['?', 'these keys'], ['g w', 'Waiting; g and t s r a x k h: Timeline, Sessions, Refused, Audit, trash, toKens, Health'], ['/', 'to the filter'], ['Esc', 'leave, close, disarm']],
  Waiting: [['j k', 'next, previous'], ['[ ]', 'previous, next file'], ['a', 'approve; then Enter, where it runs code or is not read'], ['d', 'deny, with a reason'], ['A', 'approve all that were read'], ['s', 'side by side']],
  Timeline: [['j k', 'next, previous call'], ['Enter', 'open its diff'], ['u', 'undo or redo it']] };
let going = 0;

function onkey(ev) {
  if (ev.ctrlKey || ev.metaKey || ev.altKey || ev.isComposing || !S.me || document.querySelector('dialog[open]')) return;
  const { key } = ev, { view } = route(), field = ev.target.closest('input, select, textarea');
  const done = f => { ev.preventDefault(); f(); };
  if (key === 'Escape') { if (field) field.blur(); else if (view === 'waiting') W.waitingKey(key); return; }
  if (field || !$('single').checked) return;
  if (going && Date.now() - going < 1500 && GO[key]) { going = 0; return done(() => goto(href(GO[key]))); }
  going = 0;
  if (key === 'g') going = Date.now();
  else if (key === '?') done(showKeys);
  else if (key === '/') done(() => document.querySelector('.filters input')?.focus());
  else if (view === 'waiting') { if ('jk[]sAad'.includes(key) && W.waitingKey(key, ev.repeat)) ev.preventDefault(); } else if (key === 'j' || key === 'k' || key === 'u') {
    const all = [...document.querySelectorAll('#main .open')], i = all.indexOf(document.activeElement);
    if (key !== 'u') done(() => all[Math.max(0, Math.min(all.length - 1, i + (key === 'j' ? 1 : -1)))]?.focus());
    else if (i >= 0) done(() => all[i].closest('.crow')?.querySelector(':scope > button:last-child')?.click());
  }
}

function showKeys() {
  fill($('keys-b'), Object.entries(KEYS).map(([title, list]) => h('section', {}, h('h3', {}, title),
    h('dl', {}, list.map(([keys, text]) => h('div', {}, h('dt', {}, keys.split(' ').map(k => [h('kbd', {}, k), ' '])), h('dd', {}, text)))))));
  $('keys').showModal();
}

// ---- the beginning -----------------------------------------------------------------------------

function buttons() {
  const themes = ['auto', 'light', 'dark'], now = () => saved.get('theme', 'auto');
  const label = () => { const t = now(); fill($('theme'), t[0].toUpperCase() + t.slice(1)); $('theme').setAttribute('aria-label', 'Theme: ' + (t === 'auto' ? 'as the system has it' : t)); };
  $('theme').onclick = () => {
    const t = themes[(themes.indexOf(now()) + 1) % 3];
    saved.set('theme', t);
    if (t === 'auto') delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = t;
    label();
  };
  label();
  $('help').onclick = showKeys;
  $('out').onclick = async () => { await signOut().catch(() => null); begin(); };
  $('confirm-no').onclick = () => $('confirm').close('no');
  $('single').checked = saved.get('keys', '1') === '1';
  $('single').onchange = () => saved.set('keys', $('single').checked ? '1' : '0');
  $('skip').onclick = ev => { ev.preventDefault(); $('main').focus(); };
}

buttons();
addEventListener('keydown', onkey);
addEventListener('hashchange', () => { if (S.me) ui.render(route().view !== 'waiting'); });
setInterval(() => { if (S.me) W.tick(); }, 1000);

// A code in the address signs in once; it is taken off before anything else is asked.
const code = /^#code=([A-Z0-9]+)$/.exec(location.hash);
if (code) history.replaceState(null, '', location.pathname);
try {
  if (code) await signIn({ code: code[1] });
  await start();
} catch (err) { begin(err.message); }
