/**
 * Loads the code of a page when the page is first shown. If the code file no longer exists, the service was updated to
 * another build. In this case, the dashboard reloads itself, at most once for each build, and only if the service
 * answers.
 */
const RELOADED_KEY_PREFIX = 'postrider reloaded';

/**
 * Loads a page. If the dashboard reloads, the promise never settles. If the code file is missing and the dashboard does
 * not reload, the promise rejects with an error text for the operator.
 */
export async function loadPage<T>(page: Promise<T>): Promise<T> {
  try {
    return await page;
  } catch (error) {
    // The file was loaded, but its code failed.
    if (!isMissingFileError(error)) throw error;
    if (!(await isServiceAvailable()))
      throw new Error('This page could not be loaded, because the service does not answer. Check that it is running.');
    if (!mayReload()) throw new Error('This page belongs to an older version of the service. Reload the page.');
    location.reload();
    return new Promise(() => {});
  }
}

/**
 * Browsers identify a missing file only by the text of the error. The last alternative of the pattern is the error text
 * of Vite for a missing style sheet.
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
 * Returns true on the first call for each build in this browser tab, and false on every later call. The URL of this
 * script identifies the build, so that requests answered by two different builds do not cause endless reloads.
 */
function mayReload(): boolean {
  try {
    const storageKey = `${RELOADED_KEY_PREFIX} ${import.meta.url}`;
    if (sessionStorage.getItem(storageKey) !== null) return false;
    sessionStorage.setItem(storageKey, 'yes');
    return true;
  } catch {
    // Without session storage, the dashboard cannot detect repeated reloads, so it does not reload.
    return false;
  }
}
