/**
 * Loads the fonts of the dashboard: Inter for text, JetBrains Mono for codes, both with the Latin characters only. The
 * service serves the files itself.
 *
 * The content security policy of the page allows no `@font-face` rule to load a file. The files are therefore fetched
 * as data, which the policy allows for this origin, and added as font faces. If a file cannot be loaded, the system
 * fonts are used.
 */
import interUrl from '@fontsource-variable/inter/files/inter-latin-wght-normal.woff2?url';
import monoUrl from '@fontsource-variable/jetbrains-mono/files/jetbrains-mono-latin-wght-normal.woff2?url';

/** The maximum time that the first rendering waits for the text font, so that the text does not shift. */
const MAX_WAIT_MS = 300;

/** Loads both fonts. Resolves when the text font is available, at the latest after `MAX_WAIT_MS`. Never rejects. */
export async function loadFonts(): Promise<void> {
  void addFont('JetBrains Mono', monoUrl, '100 800');
  await Promise.race([
    addFont('Inter', interUrl, '100 900'),
    new Promise<void>((resolve) => setTimeout(resolve, MAX_WAIT_MS)),
  ]);
}

async function addFont(family: string, url: string, weight: string): Promise<void> {
  try {
    const response = await fetch(url);
    if (!response.ok) return;
    const fontFace = new FontFace(family, await response.arrayBuffer(), { weight });
    document.fonts.add(await fontFace.load());
  } catch {
    // The system fonts are used.
  }
}
