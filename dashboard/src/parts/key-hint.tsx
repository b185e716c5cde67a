/** A key of the keyboard, shown beside its action. */
export function KeyHint({ children }: { readonly children: string }) {
  return (
    <span className="key" aria-hidden="true">
      {children}
    </span>
  );
}
