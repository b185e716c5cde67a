/** What the address bar holds of a page: filters, tabs, cursors, so that it can be sent to somebody. */
import { useSearchParams } from 'wouter';

export type Change = Readonly<Record<string, string | null>>;

/** The parameters, and how to change some of them; those that are empty are left out. `typed` makes no step to go back to. */
export function useAddress(): readonly [URLSearchParams, (change: Change, typed?: boolean) => void] {
  const [parameters, setParameters] = useSearchParams();
  const set = (change: Change, typed = false) =>
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
  return [parameters, set];
}
