/** The title of a page, with its actions. Also sets the title of the document. */
import { Group, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { ReactNode } from 'react';

export function PageHead({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  useDocumentTitle(`${title} · Postrider`);
  return (
    <Group justify="space-between" mb="md" gap="sm">
      <Title order={1} size="h2" className="wrap">
        {title}
      </Title>
      {children}
    </Group>
  );
}
