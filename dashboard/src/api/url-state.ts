/** Reads and changes the state of a page in the URL: filters, tabs, cursors. A copied URL shows the same page. */
import { useSearchParams } from 'wouter';

export type UrlChange = Readonly<Record<string, string | null>>;

/**
 * Returns the query parameters and a function that changes some of them. The values null and '' remove a parameter.
 * With `typed`, a change adds no entry to the history of the browser.
 */
export function useUrlState(): readonly [URLSearchParams, (change: UrlChange, typed?: boolean) => void] {
  const [parameters, setParameters] = useSearchParams();
  const setUrlState = (change: UrlChange, typed = false) =>
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries(change)) {
          if (value === null || value === '') after.delete(name);
          else after.set(name, value);
        }
        return after;
      },
      { replace: typed },
    );
  return [parameters, setUrlState];
}
