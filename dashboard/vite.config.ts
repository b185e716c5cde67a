/** Builds the dashboard into dashboard/dist, which the operator's listener serves. The build downloads nothing. */
import react from '@vitejs/plugin-react';
import { defineConfig, type Plugin } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), removeBrowserLanguage()],
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    // Every asset is a separate file, because the content security policy allows no script or style in a `data:` URL.
    assetsInlineLimit: 0,
    target: 'es2022',
    reportCompressedSize: false,
    // The manifest lists the imports of each chunk. The test of the page sizes reads the manifest. The service does not
    // serve the manifest.
    manifest: true,
  },
  // During development, `vite dashboard` serves the pages and forwards their requests to a running service.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:8081' } },
});

/**
 * Removes the code of uPlot that reads the language of the browser. When uPlot is loaded, it creates a number format
 * for this language. The constructor of the number format throws if the language is not a valid tag, such as the
 * `en-US@posix` of a Chromium that was started with LANG=C. Pages with a chart would then not be shown. The dashboard
 * is in English, so it does not need the language of the browser.
 */
function removeBrowserLanguage(): Plugin {
  const originalCode = 'new Intl.NumberFormat(domEnv ? nav.language : ';
  return {
    name: 'remove-browser-language',
    transform(code, id) {
      if (!id.endsWith('uPlot.esm.js')) return null;
      if (!code.includes(originalCode))
        throw new Error('uPlot no longer reads the language of the browser: delete removeBrowserLanguage');
      return { code: code.replace(originalCode, 'new Intl.NumberFormat('), map: null };
    },
  };
}
