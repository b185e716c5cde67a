/** A card shows one subject. The title names the subject. A link at the top right opens the page of the subject. */
import { type ReactNode, useId } from 'react';
import { Link } from 'wouter';

interface CardProps {
  readonly title: string;
  /** The state of the subject, as a badge. */
  readonly badge?: ReactNode;
  /** A short addition beside the title, such as `messages per 10 min`. */
  readonly secondary?: ReactNode;
  readonly link?: { readonly href: string; readonly text: string };
  /** Content at the top right, beside the link, such as a legend. */
  readonly aside?: ReactNode;
  /** True if the content, such as a list, extends to the edges of the card. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

export function Card({ title, badge, secondary, link, aside, flush = false, children }: CardProps) {
  const headingId = useId();
  return (
    <section className={flush ? 'card flush' : 'card'} aria-labelledby={headingId}>
      <div className="card-header">
        <h2 id={headingId}>{title}</h2>
        {badge}
        {secondary === undefined ? null : <span className="card-secondary">{secondary}</span>}
        {aside === undefined && link === undefined ? null : (
          <div className="card-aside">
            {aside}
            {link === undefined ? null : (
              <Link className="card-link" href={link.href}>
                {link.text}
              </Link>
            )}
          </div>
        )}
      </div>
      {children}
    </section>
  );
}

/** A name and its value in one row of a card. */
export function Fact({ name, children }: { readonly name: ReactNode; readonly children: ReactNode }) {
  return (
    <div className="fact">
      <span>{name}</span>
      <span>{children}</span>
    </div>
  );
}

/** A name and its value in a list `dl.record`, for values of several lines. */
export function Entry({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
