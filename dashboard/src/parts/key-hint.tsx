/** A key of the keyboard, shown beside what it does. */
export function KeyHint({ children }: { readonly children: string }) {
  return (
    <span className="key" aria-hidden="true">
      {children}
    </span>
  );
}
