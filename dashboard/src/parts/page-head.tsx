/** The title of a page, with a back link, a state, a secondary text, and the actions. Also sets the document title. */
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { Link } from 'wouter';

interface PageHeadProps {
  readonly title: string;
  /** The link to the list to which the object of the page belongs. */
  readonly parent?: { readonly href: string; readonly text: string };
  /** The last breadcrumb, such as an id. The default is the title. */
  readonly crumb?: ReactNode;
  /** The state of the object, as a badge. */
  readonly badge?: ReactNode;
  /** A short text beside the title, such as the number of entries. */
  readonly secondary?: ReactNode;
  /** The actions. The primary action is last. */
  readonly children?: ReactNode;
}

export function PageHead({ title, parent, crumb = title, badge, secondary, children }: PageHeadProps) {
  useDocumentTitle(`${title} · Postrider`);
  return (
    <>
      {parent === undefined ? null : (
        <div className="crumbs">
          <Link href={parent.href}>{parent.text}</Link>
          <span aria-hidden="true">/</span>
          <span className="wrap">{crumb}</span>
        </div>
      )}
      <div className="page-header">
        <h1>{title}</h1>
        {badge}
        {secondary === undefined ? null : <span className="page-header-secondary">{secondary}</span>}
        {children === undefined ? null : <div className="page-header-actions">{children}</div>}
      </div>
    </>
  );
}
