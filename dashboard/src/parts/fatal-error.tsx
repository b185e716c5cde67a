/** Shown if the app itself fails to render. Plain elements, because every other component may be at fault. */

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
