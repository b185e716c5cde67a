/** What is shown where nothing else can be: plain elements, for the fault may be in any other. */

export function LastWord({ error }: { readonly error: unknown }) {
  return (
    <main>
      <h1>The dashboard cannot be shown</h1>
      <p role="alert">{error instanceof Error ? error.message : 'An unknown fault.'}</p>
      <button type="button" onClick={() => window.location.reload()}>
        Load it again
      </button>
    </main>
  );
}
