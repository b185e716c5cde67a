import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { ROOT } from '../house/source.ts';

const PACKAGE = '@sparticuz/chromium';

/** The default arguments of the package are for cloud functions and remove the same-origin policy. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--font-render-hinting=none',
  // Fewer processes: a page of these tests costs a tenth less processor time.
  '--in-process-gpu',
  '--enable-features=NetworkServiceInProcess2',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost',
];

let sharedBrowser: Promise<Browser> | null = null;

export function getSharedChromium(): Promise<Browser> {
  if (sharedBrowser === null) {
    sharedBrowser = launchChromium();
    // Vitest ends its processes with SIGTERM. `process.exit` gives Playwright the time to remove the browser profile.
    process.once('SIGTERM', () => process.exit());
  }
  return sharedBrowser;
}

/** Starts a browser. The caller closes the browser. */
export async function launchChromium(): Promise<Browser> {
  const folder = await unpackChromium();
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    args: ARGS,
    headless: true,
    handleSIGTERM: false,
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') },
  });
}

/** Returns the unpacked browser. The first of several processes renames its folder; the others remove theirs. */
export async function unpackChromium(): Promise<string> {
  const cacheFolder = join(ROOT, 'node_modules/.cache');
  const folder = join(cacheFolder, `chromium-${readVersion(PACKAGE)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cacheFolder, { recursive: true });
  const unpackFolder = mkdtempSync(join(cacheFolder, 'unpacking-'));
  try {
    // The package unpacks the browser into TMPDIR, which is set for this child process.
    const script = `const { default: chromium } = await import('${PACKAGE}'); await chromium.executablePath();`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: unpackFolder },
    });
    writeFileSync(join(unpackFolder, 'fonts.conf'), buildFontsConfig(folder));
    renameSync(unpackFolder, folder);
  } catch (error) {
    // Another process has already created the folder.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(unpackFolder, { recursive: true, force: true });
  }
  return folder;
}

function buildFontsConfig(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${folder}/fonts</dir>
  <cachedir>${folder}/fonts-cache</cachedir>
</fontconfig>
`;
}

function readVersion(name: string): string {
  const require = createRequire(import.meta.url);
  // The package does not export package.json, which is two folders above the exported file.
  const path = join(dirname(require.resolve(name)), '../../package.json');
  return (require(path) as { version: string }).version;
}
