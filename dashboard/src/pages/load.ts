/**
 * Loads a part of the dashboard when it is needed. A part that is gone is of an earlier build than the service now has: the page
 * is loaded again by itself, once for each build, and only while the service is there to load it from.
 */
const TRIED = 'postrider reloaded';

/** Resolves never where the page is being loaded again; rejects with a line for people. */
export async function loaded<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (error) {
    // The part is there, and fails as it starts.
    if (!isMissing(error)) throw error;
    if (!(await isThere()))
      throw new Error('This page could not be loaded: the service cannot be reached; is it running?');
    if (!mayReload()) throw new Error('This page is of an older version of the service; load it again.');
    location.reload();
    return new Promise(() => {});
  }
}

/** Browsers tell it in words alone, each in its own; the last are of the build tool, for a part's styles. */
function isMissing(error: unknown): boolean {
  return (
    error instanceof Error && /imported module|module script|does not provide|Unable to preload/i.test(error.message)
  );
}

async function isThere(): Promise<boolean> {
  try {
    return (await fetch('/', { method: 'HEAD' })).ok;
  } catch {
    return false;
  }
}

/** Once for each build, whose name is that of the script this is in: two that take turns make no loop either. */
function mayReload(): boolean {
  try {
    const tried = `${TRIED} ${import.meta.url}`;
    if (sessionStorage.getItem(tried) !== null) return false;
    sessionStorage.setItem(tried, 'yes');
    return true;
  } catch {
    // Without storage nothing would end a loop.
    return false;
  }
}
