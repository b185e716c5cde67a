/** Every page and its address; one that is not needed yet is not loaded. */
import { type ComponentType, lazy } from 'react';
import type { Session } from '../api/types';

export interface PageProps {
  readonly parameters: Readonly<Record<string, string | undefined>>;
  readonly session: Session;
}

export const pages: readonly { readonly path: string; readonly Page: ComponentType<PageProps> }[] = [
  { path: '/', Page: lazy(() => import('./overview').then(({ OverviewPage }) => ({ default: OverviewPage }))) },
  { path: '/messages', Page: lazy(() => import('./messages').then(({ MessagesPage }) => ({ default: MessagesPage }))) },
  {
    path: '/messages/:id',
    Page: lazy(() => import('./message').then(({ MessagePage }) => ({ default: MessagePage }))),
  },
  // One page: the list stays while mails are looked at.
  { path: '/inbox/:id?', Page: lazy(() => import('./inbox').then(({ InboxPage }) => ({ default: InboxPage }))) },
  { path: '/accounts', Page: lazy(() => import('./accounts').then(({ AccountsPage }) => ({ default: AccountsPage }))) },
  {
    path: '/accounts/:name',
    Page: lazy(() => import('./account').then(({ AccountPage }) => ({ default: AccountPage }))),
  },
  { path: '/domains', Page: lazy(() => import('./domains').then(({ DomainsPage }) => ({ default: DomainsPage }))) },
  { path: '/domains/:name', Page: lazy(() => import('./domain').then(({ DomainPage }) => ({ default: DomainPage }))) },
  {
    path: '/suppressions',
    Page: lazy(() => import('./suppressions').then(({ SuppressionsPage }) => ({ default: SuppressionsPage }))),
  },
  { path: '/audit', Page: lazy(() => import('./audit').then(({ AuditPage }) => ({ default: AuditPage }))) },
  { path: '*', Page: lazy(() => import('./not-found').then(({ NotFoundPage }) => ({ default: NotFoundPage }))) },
];
