// The theme is set before the first paint; app.js has the button for it.
'use strict';
try {
  const theme = localStorage.getItem('moltis.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch { /* a window without storage is as the system is */ }
