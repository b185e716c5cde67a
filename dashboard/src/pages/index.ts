/** Every page and its address; one that is not needed yet is not loaded. */
import { type ComponentType, lazy } from 'react';
import type { Session } from '../../../src/operator/schemas.ts';
import { loaded } from './load';

export interface PageProps {
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly session: Session;
}

export const pages: readonly { readonly path: string; readonly Page: ComponentType<PageProps> }[] = [
  { path: '/', Page: lazy(() => loaded(import('./overview')).then(({ OverviewPage }) => ({ default: OverviewPage }))) },
  {
    path: '/messages',
    Page: lazy(() => loaded(import('./messages')).then(({ MessagesPage }) => ({ default: MessagesPage }))),
  },
  {
    path: '/messages/:id',
    Page: lazy(() => loaded(import('./message')).then(({ MessagePage }) => ({ default: MessagePage }))),
  },
  // One page: the list stays while mails are looked at.
  {
    path: '/inbox/:id?',
    Page: lazy(() => loaded(import('./inbox')).then(({ InboxPage }) => ({ default: InboxPage }))),
  },
  {
    path: '/accounts',
    Page: lazy(() => loaded(import('./accounts')).then(({ AccountsPage }) => ({ default: AccountsPage }))),
  },
  {
    path: '/accounts/:name',
    Page: lazy(() => loaded(import('./account')).then(({ AccountPage }) => ({ default: AccountPage }))),
  },
  {
    path: '/domains',
    Page: lazy(() => loaded(import('./domains')).then(({ DomainsPage }) => ({ default: DomainsPage }))),
  },
  {
    path: '/domains/:name',
    Page: lazy(() => loaded(import('./domain')).then(({ DomainPage }) => ({ default: DomainPage }))),
  },
  {
    path: '/suppressions',
    Page: lazy(() => loaded(import('./suppressions')).then(({ SuppressionsPage }) => ({ default: SuppressionsPage }))),
  },
  { path: '/audit', Page: lazy(() => loaded(import('./audit')).then(({ AuditPage }) => ({ default: AuditPage }))) },
  {
    path: '*',
    Page: lazy(() => loaded(import('./not-found')).then(({ NotFoundPage }) => ({ default: NotFoundPage }))),
  },
];
