/** Builds the dashboard into dashboard/dist, which the operator's listener serves. Nothing is downloaded. */
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
  // Every asset is a file of its own: the page's content policy allows no data: script or style.
  build: { outDir: 'dist', emptyOutDir: true, assetsInlineLimit: 0, target: 'es2022', reportCompressedSize: false },
  // `vite dashboard` beside a running service, for work on the pages.
  server: { port: 5173, proxy: { '/api': 'http://127.0.0.1:8081', '/sign-in': 'http://127.0.0.1:8081' } },
});
