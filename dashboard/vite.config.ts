/** Builds the dashboard into dashboard/dist, which the operator's listener serves. Nothing is downloaded. */
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), plainNumbers()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // Every asset is a file of its own: the page's content policy allows no data: script or style.
    assetsInlineLimit: 0,
    target: 'es2022',
    reportCompressedSize: false,
    // Which part takes which along, for the test that holds pages to a size; it is not served.
    manifest: true,
  },
  // `vite dashboard` beside a running service, for work on the pages.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:8081' } },
});

/**
 * uPlot makes a formatter of numbers for the browser's language as it is loaded, and throws where that is no language tag, such as
 * the `en-US@posix` of a Chromium that was started with LANG=C: no page with a chart could be shown. The pages are in English.
 */
function plainNumbers(): Plugin {
  const asked = 'new Intl.NumberFormat(domEnv ? nav.language : ';
  return {
    name: 'plain-numbers',
    transform(code, id) {
      if (!id.endsWith('uPlot.esm.js')) return null;
      if (!code.includes(asked)) throw new Error('uPlot no longer asks for the language: plainNumbers can go');
      return { code: code.replace(asked, 'new Intl.NumberFormat('), map: null };
    },
  };
}
