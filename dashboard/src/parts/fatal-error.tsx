/**
 * The page that is shown if the dashboard fails to render. The page uses only plain elements, because the fault may be
 * in any other component.
 */

export function FatalError({ error }: { readonly error: unknown }) {
  return (
    <main>
      <h1>The dashboard cannot be shown</h1>
      <p role="alert">{error instanceof Error ? error.message : 'Unknown error.'}</p>
      <button type="button" onClick={() => window.location.reload()}>
        Reload
      </button>
    </main>
  );
}
