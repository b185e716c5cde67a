/**
 * Loads the code of a page when it is first shown. If the file no longer exists, the service has a newer build. The
 * dashboard then reloads itself, once for each build, and only if the service answers.
 */
const RELOADED_KEY_PREFIX = 'postrider reloaded';

/**
 * Loads a page. The promise never resolves if the dashboard reloads, and rejects with an error text for the operator.
 */
export async function loadPage<T>(page: Promise<T>): Promise<T> {
  try {
    return await page;
  } catch (error) {
    // The file was loaded, but its code failed.
    if (!isMissingFileError(error)) throw error;
    if (!(await isServiceAvailable()))
      throw new Error('This page could not be loaded, because the service does not answer. Check that it is running.');
    if (!mayReload()) throw new Error('This page belongs to an older version of the service. Reload it.');
    location.reload();
    return new Promise(() => {});
  }
}

/**
 * Browsers identify a missing file only by the wording of the error. The last text in the list is the error of Vite for
 * style sheets.
 */
function isMissingFileError(error: unknown): boolean {
  return (
    error instanceof Error && /imported module|module script|does not provide|Unable to preload/i.test(error.message)
  );
}

async function isServiceAvailable(): Promise<boolean> {
  try {
    return (await fetch('/', { method: 'HEAD' })).ok;
  } catch {
    return false;
  }
}

/**
 * Returns true once for each build. The URL of this script identifies the build, so that two alternating builds cause
 * no loop.
 */
function mayReload(): boolean {
  try {
    const key = `${RELOADED_KEY_PREFIX} ${import.meta.url}`;
    if (sessionStorage.getItem(key) !== null) return false;
    sessionStorage.setItem(key, 'yes');
    return true;
  } catch {
    // Without storage, the dashboard does not reload, because a loop of reloads would not end.
    return false;
  }
}
