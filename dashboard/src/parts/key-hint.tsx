/** A keyboard key, shown beside its action. */
export function KeyHint({ children }: { readonly children: string }) {
  return (
    <span className="key" aria-hidden="true">
      {children}
    </span>
  );
}

interface KeyHintsProps {
  /** The label of the key Enter, such as `open`. */
  readonly openLabel: string;
  /** The label of the key `/`; null if the page has no search field. */
  readonly search?: string | null;
  /** True if the key x selects a row. */
  readonly canSelect?: boolean;
}

/**
 * The keyboard shortcuts of a list (use-row-keys.ts), shown after the filters of the list. The shortcuts are hidden on
 * a narrow screen.
 */
export function KeyHints({ openLabel, search = 'search', canSelect = false }: KeyHintsProps) {
  return (
    <span className="key-hints">
      {search === null ? null : (
        <>
          <kbd>/</kbd> {search} ·{' '}
        </>
      )}
      <kbd>j</kbd> <kbd>k</kbd> move · <kbd>Enter</kbd> {openLabel}
      {canSelect ? (
        <>
          {' '}
          · <kbd>x</kbd> select
        </>
      ) : null}
    </span>
  );
}
