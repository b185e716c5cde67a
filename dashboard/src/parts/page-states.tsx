/** The states that a page shows in place of its content: loading, empty, error. */
import { Button, Skeleton } from '@mantine/core';
import { IconAlertTriangle, IconInbox, type TablerIcon } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { TextWithCode } from './text-with-code';

const PLACEHOLDER_ROWS = ['first', 'second', 'third', 'fourth', 'fifth', 'sixth'];

/** Shows a placeholder while a list loads. */
export function Loading() {
  return (
    <div className="card flush" role="status" aria-label="Loading">
      {PLACEHOLDER_ROWS.map((row, index) => (
        <div key={row} className="skeleton-row">
          <Skeleton height={20} width={78} radius="sm" />
          <Skeleton height={14} width={`${52 - (index % 3) * 9}%`} radius="sm" />
        </div>
      ))}
    </div>
  );
}

interface EmptyStateProps {
  readonly title: string;
  readonly Icon?: TablerIcon;
  readonly children?: ReactNode;
  /** The next step: a command or a button. */
  readonly nextStep?: ReactNode;
}

export function EmptyState({ title, Icon = IconInbox, children, nextStep }: EmptyStateProps) {
  return (
    <div className="card empty">
      <span className="empty-icon">
        <Icon size={20} stroke={1.6} aria-hidden />
      </span>
      <div className="empty-title wrap">{title}</div>
      {children === undefined ? null : <div className="empty-text sentence">{children}</div>}
      {nextStep === undefined ? null : <div className="empty-next">{nextStep}</div>}
    </div>
  );
}

export function ErrorAlert({ error, retry }: { readonly error: unknown; readonly retry?: () => unknown }) {
  return (
    <div className="attention-row tone-error" role="alert">
      <IconAlertTriangle size={18} stroke={1.8} aria-hidden />
      <div className="attention-text wrap">
        <TextWithCode text={error instanceof Error ? error.message : 'Unknown error.'} />
      </div>
      {retry === undefined ? null : (
        <Button variant="default" size="xs" onClick={() => void retry()}>
          Try again
        </Button>
      )}
    </div>
  );
}
