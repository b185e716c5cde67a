/** Reads and changes the state of a page in the URL: filters, tabs, cursors. A copied URL shows the same page. */
import { useSearchParams } from 'wouter';

export type UrlChange = Readonly<Record<string, string | null>>;

/**
 * Returns the query parameters and a function that changes some of them. The values null and '' remove a parameter.
 * With `isTyped`, a change adds no entry to the history of the browser.
 */
export function useUrlState(): readonly [URLSearchParams, (change: UrlChange, isTyped?: boolean) => void] {
  const [parameters, setParameters] = useSearchParams();
  const setUrlState = (change: UrlChange, isTyped = false) =>
    setParameters(
      (currentParameters) => {
        const newParameters = new URLSearchParams(currentParameters);
        for (const [name, value] of Object.entries(change)) {
          if (value === null || value === '') newParameters.delete(name);
          else newParameters.set(name, value);
        }
        return newParameters;
      },
      { replace: isTyped },
    );
  return [parameters, setUrlState];
}
